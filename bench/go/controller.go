package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// spinning is how long reconciles that come again and again are counted.
const spinning = 4 * time.Second

// order is what bench/src/controller/mod.rs wants to be run.
type order struct {
	kubeconfig, workload      string
	workers, objects, updates int
}

func readOrder(arguments []string) (order, error) {
	if len(arguments) != 5 {
		return order{}, fmt.Errorf("usage: controller KUBECONFIG WORKLOAD WORKERS OBJECTS UPDATES")
	}
	order := order{kubeconfig: arguments[0], workload: arguments[1]}
	for index, number := range []*int{&order.workers, &order.objects, &order.updates} {
		var err error
		if *number, err = strconv.Atoi(arguments[2+index]); err != nil {
			return order, err
		}
	}
	return order, nil
}

// measureController measures a controller with default settings, except that it says nothing,
// has no metrics endpoint and no limit on its requests, as the other systems.
func measureController(order order) error {
	tally := newTally(order.workload, order.objects)
	start, startComputed := time.Now().UnixNano(), computed()
	if err := startController(order, tally); err != nil {
		return err
	}
	seconds := float64(<-tally.allDone-start) / 1e9
	used := computed() - startComputed
	switch order.workload {
	case "idle":
		// What Go would free by and by is freed at once, so that only what is needed counts.
		runtime.GC()
		debug.FreeOSMemory()
		time.Sleep(settle)
		figure("idle_bytes", memory("VmRSS:"))
	case "noop":
		figure("start_seconds", seconds)
		patches(order, tally, "")
		tally.expect(order.objects)
		tell(map[string]any{"await": "burst"})
		at := <-tally.allDone
		tell(map[string]any{"heard": map[string]any{"phase": "burst", "at": at}})
	case "spin":
		spin(order, tally)
	case "status":
		figure("status_reconciles_per_second", float64(order.objects)/seconds)
		figure("status_cpu_us", used*1e6/float64(order.objects))
		patches(order, tally, "status_")
	default:
		return fmt.Errorf("unknown workload %q", order.workload)
	}
	return nil
}

func startController(order order, tally *tally) error {
	log.SetLogger(logr.Discard())
	config, err := clientcmd.BuildConfigFromFlags("", order.kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	manager, err := manager.New(config, manager.Options{
		Scheme:  widgetScheme(),
		Metrics: server.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	err = builder.ControllerManagedBy(manager).
		For(&Widget{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: order.workers}).
		Complete(&reconciler{manager.GetClient(), tally})
	if err != nil {
		return err
	}
	go func() {
		if err := manager.Start(context.Background()); err != nil {
			panic(err)
		}
	}()
	return nil
}

// reconciler reads its object from the cache, as nearly every reconciler does first.
type reconciler struct {
	client client.Client
	tally  *tally
}

func (reconciler *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var widget Widget
	if err := reconciler.client.Get(ctx, request.NamespacedName, &widget); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	switch reconciler.tally.judge(&widget) {
	case again:
		return reconcile.Result{RequeueAfter: time.Nanosecond}, nil
	case write:
		before := widget.DeepCopyObject().(*Widget)
		widget.Status.Written = widget.Annotations[written]
		err := reconciler.client.Status().Patch(ctx, &widget, client.MergeFrom(before))
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, nil
}

func patches(order order, tally *tally, prefix string) {
	if order.updates == 0 {
		return
	}
	tally.expect(order.updates)
	tell(map[string]any{"await": "patches"})
	<-tally.allDone
	latencies := tally.sorted()
	figure(prefix+"latency_p50_ms", percentile(latencies, 0.50))
	figure(prefix+"latency_p99_ms", percentile(latencies, 0.99))
}

func spin(order order, tally *tally) {
	tell(map[string]any{"await": "spin"})
	for tally.spins.Load() < int64(2*order.objects) {
		time.Sleep(10 * time.Millisecond)
	}
	before, startComputed, start := tally.spins.Load(), computed(), time.Now()
	time.Sleep(spinning)
	spins := float64(tally.spins.Load() - before)
	figure("reconciles_per_second", spins/time.Since(start).Seconds())
	figure("reconcile_cpu_us", (computed()-startComputed)*1e6/spins)
	tally.stopped.Store(true)
}
