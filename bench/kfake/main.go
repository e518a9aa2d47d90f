// One broker of franz-go's kfake with the topic t of one partition, on the port that is the argument.
package main

import (
	"fmt"
	"os"
	"strconv"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	port, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(port), kfake.SeedTopics(1, "t"))
	if err != nil {
		panic(err)
	}
	fmt.Println(cluster.ListenAddrs())
	select {}
}
