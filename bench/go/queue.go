package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"
)

const (
	producers = 8
	workers   = 8
	keySpace  = 10_000
	spread    = time.Second
)

// measureQueue measures a rate limiting queue, which is what controllers use.
func measureQueue(operations, delayed int) {
	rate := func(took time.Duration) float64 { return float64(operations) / took.Seconds() }
	figure("queue_ops_per_second", rate(throughput(operations, operations)))
	figure("queue_flood_per_second", rate(throughput(operations, keySpace)))
	figure("queue_delayed_seconds", delayedKeys(delayed).Seconds())
}

// work is a queue and its workers.
type work struct {
	queue       workqueue.TypedRateLimitingInterface[string]
	taken, done atomic.Int64
	workers     sync.WaitGroup
}

func startWork() *work {
	limiter := workqueue.DefaultTypedControllerRateLimiter[string]()
	work := &work{queue: workqueue.NewTypedRateLimitingQueue(limiter)}
	for range workers {
		work.workers.Go(func() {
			for {
				key, shutDown := work.queue.Get()
				if shutDown {
					return
				}
				work.taken.Add(1)
				work.queue.Done(key)
				work.done.Add(1)
			}
		})
	}
	return work
}

func (work *work) stop() {
	work.queue.ShutDown()
	work.workers.Wait()
}

func key(number int) string {
	return fmt.Sprintf("namespace-%d/pod-%d", number%50, number)
}

// throughput is the time until so many adds of so many different keys were worked on.
func throughput(operations, different int) time.Duration {
	keys := make([]string, different)
	for number := range keys {
		keys[number] = key(number)
	}
	work := startWork()
	start := time.Now()
	var producing sync.WaitGroup
	for producer := range producers {
		producing.Go(func() {
			for turn := range operations / producers {
				work.queue.Add(keys[(turn*producers+producer)%len(keys)])
			}
		})
	}
	producing.Wait()
	for work.queue.Len() > 0 || work.taken.Load() != work.done.Load() {
		time.Sleep(time.Millisecond)
	}
	took := time.Since(start)
	work.stop()
	return took
}

// delayedKeys is the time from the first delayed key until all were worked on.
func delayedKeys(count int) time.Duration {
	work := startWork()
	start := time.Now()
	for number := range count {
		work.queue.AddAfter(key(number), time.Duration(float64(spread)*float64(number+1)/float64(count)))
	}
	for work.done.Load() < int64(count) {
		time.Sleep(time.Millisecond)
	}
	took := time.Since(start)
	work.stop()
	return took
}
