// A client of franz-go that knows only the addresses in KGO_SEEDS: it administers, produces, consumes
// in a group, and reads the metadata log. The first error ends it with exit code 1. With the argument "follow"
// it reads only the metadata log, with the client id KGO_CLIENT_ID and without end, and prints each record's
// offset and its value in hexadecimal. With "late" it is a member of a share group that acknowledges too late.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	topic       = "franz-go-admin"
	group       = "franz-go-group"
	metadataLog = "__cluster_metadata"
	records     = 100
)

var seeds = kgo.SeedBrokers(strings.Split(os.Getenv("KGO_SEEDS"), ",")...)

func must(what string, err error) {
	if err != nil {
		log.Fatalf("%s: %v", what, err)
	}
	fmt.Println(what)
}

func client(options ...kgo.Opt) *kgo.Client {
	made, err := kgo.NewClient(append(options, seeds)...)
	if err != nil {
		log.Fatal(err)
	}
	return made
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "follow" {
		followMetadataLog(context.Background())
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if len(os.Args) > 1 && os.Args[1] == "late" {
		acknowledgeLate(ctx)
		return
	}
	plain := client()
	defer plain.Close()
	admin := kadm.NewClient(plain)

	brokers, err := admin.ListBrokers(ctx)
	must(fmt.Sprintf("brokers are listed: %v", brokers.NodeIDs()), err)
	_, err = admin.CreateTopic(ctx, 2, 1, nil, topic)
	must("a topic is created", err)
	value := "12345678"
	_, err = admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Name: "retention.ms", Value: &value}}, topic)
	must("its config is changed", err)
	for { // by a broker, which learns of the change a little later
		configs, err := admin.DescribeTopicConfigs(ctx, topic)
		if err != nil {
			log.Fatalf("its configs: %v", err)
		}
		if one, err := configs.On(topic, nil); err == nil && values(one)["retention.ms"] == value {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	must("its config is described", nil)
	produceAndConsume(ctx, admin)
	readMetadataLog(ctx)
	_, err = admin.DeleteTopics(ctx, topic)
	must("the topic is deleted", err)
}

func values(resource kadm.ResourceConfig) map[string]string {
	found := map[string]string{}
	for _, config := range resource.Configs {
		found[config.Key] = config.MaybeValue()
	}
	return found
}

func produceAndConsume(ctx context.Context, admin *kadm.Client) {
	producer := client(kgo.DefaultProduceTopic(topic))
	defer producer.Close()
	for number := range records {
		producer.Produce(ctx, kgo.StringRecord(fmt.Sprint(number)), func(_ *kgo.Record, err error) {
			if err != nil {
				log.Fatalf("produce: %v", err)
			}
		})
	}
	must("records are produced", producer.Flush(ctx))
	consumer := client(
		kgo.ConsumeTopics(topic), kgo.ConsumerGroup(group),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(),
	)
	defer consumer.Close()
	for seen := 0; seen < records; {
		fetches := consumer.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			log.Fatalf("consume: %v", err)
		}
		seen += fetches.NumRecords()
	}
	must("records are consumed in a group, and committed", consumer.CommitUncommittedOffsets(ctx))
	ends, err := admin.ListEndOffsets(ctx, topic)
	must("end offsets are listed", err)
	sum := int64(0)
	ends.Each(func(one kadm.ListedOffset) { sum += one.Offset })
	if sum != records {
		log.Fatalf("%d records are in the topic, not %d", sum, records)
	}
}

func followMetadataLog(ctx context.Context) {
	start := map[string]map[int32]kgo.Offset{metadataLog: {0: kgo.NewOffset().AtStart()}}
	reader := client(kgo.ConsumePartitions(start), kgo.ClientID(os.Getenv("KGO_CLIENT_ID")))
	for {
		reader.PollFetches(ctx).EachRecord(func(record *kgo.Record) {
			fmt.Printf("%d %x\n", record.Offset, record.Value)
		})
	}
}

func readMetadataLog(ctx context.Context) {
	start := map[string]map[int32]kgo.Offset{metadataLog: {0: kgo.NewOffset().AtStart()}}
	reader := client(kgo.ConsumePartitions(start))
	defer reader.Close()
	last := int64(-1)
	for last < 10 {
		fetches := reader.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			log.Fatalf("the metadata log: %v", err)
		}
		fetches.EachRecord(func(record *kgo.Record) {
			if record.Offset <= last {
				log.Fatalf("offset %d came after %d", record.Offset, last)
			}
			last = record.Offset
		})
	}
	must(fmt.Sprintf("the metadata log is read up to offset %d", last), nil)
}
