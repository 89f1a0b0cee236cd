package conformance

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/go-logr/logr"
)

// finalizer holds a Ship until its reconciler has seen it go.
const finalizer = "managed.example.com/harbour"

// harbour keeps a ConfigMap for each Ship and notes it in the Ship's status.
type harbour struct {
	client.Client
	kind schema.GroupVersionKind
	gone chan string
}

func (h *harbour) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	ship := &unstructured.Unstructured{}
	ship.SetGroupVersionKind(h.kind)
	if err := h.Get(ctx, request.NamespacedName, ship); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !ship.GetDeletionTimestamp().IsZero() {
		if controllerutil.RemoveFinalizer(ship, finalizer) {
			h.gone <- ship.GetName()
			return ctrl.Result{}, h.Update(ctx, ship)
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(ship, finalizer) {
		return ctrl.Result{}, h.Update(ctx, ship)
	}
	port, _, _ := unstructured.NestedString(ship.Object, "spec", "port")
	entry := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: request.Name, Namespace: request.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, h.Client, entry, func() error {
		entry.Data = map[string]string{"port": port}
		return controllerutil.SetControllerReference(ship, entry, h.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	before := client.MergeFrom(ship.DeepCopy())
	if err := unstructured.SetNestedField(ship.Object, port, "status", "at"); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, h.Status().Patch(ctx, ship, before)
}

func TestAManagerReconcilesACustomResource(t *testing.T) {
	t.Parallel()
	log.SetLogger(logr.Discard())
	_, namespace := typed(t)
	resource := define(t, "managed.example.com")
	kind := resource.GroupVersion().WithKind("Ship")
	manager, err := ctrl.NewManager(connect(t), ctrl.Options{
		Metrics:                 server.Options{BindAddress: "0"},
		LeaderElection:          true,
		LeaderElectionID:        "harbour",
		LeaderElectionNamespace: namespace,
		Cache:                   cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
	})
	must(t, err)
	reconciler := &harbour{Client: manager.GetClient(), kind: kind, gone: make(chan string, 10)}
	watched := &unstructured.Unstructured{}
	watched.SetGroupVersionKind(kind)
	must(t, ctrl.NewControllerManagedBy(manager).Named("harbour").For(watched).Owns(&corev1.ConfigMap{}).Complete(reconciler))
	go func() {
		if err := manager.Start(t.Context()); err != nil {
			t.Error(err)
		}
	}()

	// A client of its own reads what is stored, where the manager's reads its cache.
	direct, err := client.New(connect(t), client.Options{})
	must(t, err)
	fram := ship(resource, "fram")
	fram.SetNamespace(namespace)
	must(t, direct.Create(t.Context(), fram))
	name := client.ObjectKeyFromObject(fram)
	entry := &corev1.ConfigMap{}
	entryHas := func(port string) func() bool {
		return func() bool { return direct.Get(t.Context(), name, entry) == nil && entry.Data["port"] == port }
	}
	eventually(t, "the ship has its entry", entryHas("Oslo"))
	if !metav1.IsControlledBy(entry, fram) {
		t.Errorf("the entry is owned by %+v", entry.OwnerReferences)
	}
	eventually(t, "the status says where", func() bool {
		must(t, direct.Get(t.Context(), name, fram))
		at, _, _ := unstructured.NestedString(fram.Object, "status", "at")
		return at == "Oslo"
	})

	before := client.MergeFrom(fram.DeepCopy())
	must(t, unstructured.SetNestedField(fram.Object, "Bergen", "spec", "port"))
	must(t, direct.Patch(t.Context(), fram, before))
	eventually(t, "the entry follows", entryHas("Bergen"))
	must(t, direct.Delete(t.Context(), entry))
	eventually(t, "a deleted entry comes back", entryHas("Bergen"))

	must(t, direct.Delete(t.Context(), fram))
	if gone := <-reconciler.gone; gone != "fram" {
		t.Errorf("%s went", gone)
	}
	eventually(t, "ship and entry are gone", func() bool {
		missing := func(object client.Object) bool {
			return client.IgnoreNotFound(direct.Get(t.Context(), name, object)) == nil && object.GetUID() == ""
		}
		left := &unstructured.Unstructured{}
		left.SetGroupVersionKind(kind)
		return missing(left) && missing(&corev1.ConfigMap{})
	})
}
