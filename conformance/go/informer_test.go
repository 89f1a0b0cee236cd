package conformance

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func TestAnInformerFillsItselfByAWatchList(t *testing.T) {
	t.Parallel()
	config := connect(t)
	seen := record(config)
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	namespace := namespace(t, client)
	maps := client.CoreV1().ConfigMaps(namespace)
	_, err = maps.Create(t.Context(), configMap("before"), metav1.CreateOptions{})
	must(t, err)

	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	informer := factory.Core().V1().ConfigMaps()
	changes := follow(t, informer.Informer())
	factory.Start(t.Context().Done())
	if !cache.WaitForCacheSync(t.Context().Done(), informer.Informer().HasSynced) {
		t.Fatal("the cache never synced")
	}
	_, err = informer.Lister().ConfigMaps(namespace).Get("before")
	must(t, err)
	changeEverything(t, client, namespace)
	changes.expect(t, "added before", "added during", "updated during", "deleted during")

	watches := seen.exchanges(func(one exchange) bool {
		return strings.HasSuffix(one.path, "/configmaps") && one.query.Get("sendInitialEvents") == "true"
	})
	lists := seen.exchanges(func(one exchange) bool {
		return strings.HasSuffix(one.path, "/configmaps") && one.method == "GET" && !one.query.Has("watch")
	})
	if len(watches) == 0 || len(lists) != 0 {
		t.Fatalf("streamed %d times, listed %d times", len(watches), len(lists))
	}
}

// plain is a ListerWatcher as clients have it that know no WatchList.
type plain struct{ cache.ListerWatcher }

func (plain) IsWatchListSemanticsUnSupported() bool { return true }

func TestAnInformerThatListsAndWatchesSeesTheSame(t *testing.T) {
	t.Parallel()
	config := connect(t)
	seen := record(config)
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	namespace := namespace(t, client)
	maps := client.CoreV1().ConfigMaps(namespace)
	_, err = maps.Create(t.Context(), configMap("before"), metav1.CreateOptions{})
	must(t, err)

	source := plain{&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return maps.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return maps.Watch(ctx, options)
		},
	}}
	informer := cache.NewSharedInformer(source, &corev1.ConfigMap{}, 0)
	changes := follow(t, informer)
	go informer.RunWithContext(t.Context())
	if !cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		t.Fatal("the cache never synced")
	}
	changeEverything(t, client, namespace)
	changes.expect(t, "added before", "added during", "updated during", "deleted during")

	streamed := seen.exchanges(func(one exchange) bool { return one.query.Has("sendInitialEvents") })
	if len(streamed) != 0 {
		t.Fatalf("this informer was not to stream: %+v", streamed)
	}
}

// changeEverything creates, updates and deletes the object "during".
func changeEverything(t *testing.T, client kubernetes.Interface, namespace string) {
	t.Helper()
	maps := client.CoreV1().ConfigMaps(namespace)
	created, err := maps.Create(t.Context(), configMap("during"), metav1.CreateOptions{})
	must(t, err)
	created.Data["colour"] = "red"
	_, err = maps.Update(t.Context(), created, metav1.UpdateOptions{})
	must(t, err)
	must(t, maps.Delete(t.Context(), "during", metav1.DeleteOptions{}))
}

// followed is what an informer told its handler, as words.
type followed struct {
	mu    sync.Mutex
	words []string
}

func follow(t *testing.T, informer cache.SharedInformer) *followed {
	t.Helper()
	all := &followed{}
	add := func(verb string, object any) {
		all.mu.Lock()
		defer all.mu.Unlock()
		name := object.(*corev1.ConfigMap).Name
		if name != "kube-root-ca.crt" { // a controller puts it into every namespace
			all.words = append(all.words, verb+" "+name)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { add("added", object) },
		UpdateFunc: func(_, object any) { add("updated", object) },
		DeleteFunc: func(object any) { add("deleted", object) },
	})
	must(t, err)
	return all
}

func (f *followed) expect(t *testing.T, wanted ...string) {
	t.Helper()
	eventually(t, strings.Join(wanted, ", "), func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return strings.Join(f.words, ",") == strings.Join(wanted, ",")
	})
}

func TestOneOfTwoCandidatesLeadsUntilItLetsGo(t *testing.T) {
	t.Parallel()
	client, namespace := typed(t)
	leaders := make(chan string, 10)
	candidate := func(name string) context.CancelFunc {
		ctx, stop := context.WithCancel(t.Context())
		go leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta:  metav1.ObjectMeta{Name: "leader", Namespace: namespace},
				Client:     client.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: name},
			},
			LeaseDuration:   10 * time.Second,
			RenewDeadline:   5 * time.Second,
			RetryPeriod:     100 * time.Millisecond,
			ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { leaders <- name },
				OnStoppedLeading: func() {},
			},
		})
		return stop
	}
	stop := candidate("first")
	if leader := <-leaders; leader != "first" {
		t.Fatal("led by", leader)
	}
	defer candidate("second")()
	select {
	case leader := <-leaders:
		t.Fatal("also led by", leader)
	case <-time.After(500 * time.Millisecond):
	}
	stop()
	if leader := <-leaders; leader != "second" {
		t.Fatal("led by", leader)
	}
	lease, err := client.CoordinationV1().Leases(namespace).Get(t.Context(), "leader", metav1.GetOptions{})
	must(t, err)
	if *lease.Spec.HolderIdentity != "second" || *lease.Spec.LeaseTransitions < 1 {
		t.Fatalf("the lease says %+v", lease.Spec)
	}
}
