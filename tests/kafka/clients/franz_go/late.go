package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	lateTopic = "franz-go-late"
	lateGroup = "franz-go-late-group"
	patience  = 30 * time.Second
)

// acknowledgeLate acknowledges a record that another member of the share group holds by then. The broker
// refuses that; afterwards the member must still get the records of the partition.
func acknowledgeLate(ctx context.Context) {
	producer := client(kgo.DefaultProduceTopic(lateTopic))
	defer producer.Close()
	_, err := kadm.NewClient(producer).CreateTopic(ctx, 1, 1, nil, lateTopic)
	must("a topic is created", err)
	produce := func() int64 {
		made, err := producer.ProduceSync(ctx, kgo.StringRecord("value")).First()
		if err != nil {
			log.Fatalf("produce: %v", err)
		}
		return made.Offset
	}
	slow := member()
	defer slow.Close()
	var late *kgo.Record
	for late == nil {
		produce()
		for _, one := range poll(ctx, slow, 1) {
			late = one
		}
	}
	must("a member holds a record", nil)
	for slow.BufferedFetchRecords() == 0 { // with a fetch that is not polled it sends acknowledgements alone
		produce()
		time.Sleep(100 * time.Millisecond)
	}
	quick := member()
	for held := false; !held; {
		for _, one := range poll(ctx, quick, 100) {
			held = held || one.Offset == late.Offset
		}
	}
	must("another member holds it", nil)
	late.Ack(kgo.AckAccept)
	fmt.Println("acknowledged late:", slow.FlushAcks(ctx))
	quick.Close()
	last := produce()
	for until := time.Now().Add(patience); time.Now().Before(until); {
		for _, one := range poll(ctx, slow, 100) {
			if one.Offset >= last {
				must("the late member reads on", nil)
				return
			}
		}
	}
	log.Fatal("the late member reads no more")
}

func member() *kgo.Client {
	return client(
		kgo.ConsumeTopics(lateTopic), kgo.ShareGroup(lateGroup), kgo.FetchMaxWait(500*time.Millisecond),
	)
}

func poll(ctx context.Context, from *kgo.Client, most int) []*kgo.Record {
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return from.PollRecords(short, most).Records()
}
