package conformance

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/util/retry"
)

func TestTypedObjectsAreCreatedReadChangedAndDeleted(t *testing.T) {
	t.Parallel()
	client, namespace := typed(t)
	maps := client.CoreV1().ConfigMaps(namespace)

	created, err := maps.Create(t.Context(), configMap("web"), metav1.CreateOptions{})
	must(t, err)
	if created.UID == "" || created.ResourceVersion == "" || created.CreationTimestamp.IsZero() {
		t.Fatalf("the server did not fill in %+v", created.ObjectMeta)
	}
	_, err = maps.Create(t.Context(), configMap("web"), metav1.CreateOptions{})
	if !errors.IsAlreadyExists(err) {
		t.Fatalf("a second create gave %v", err)
	}

	stale := created.DeepCopy()
	created.Data["colour"] = "red"
	updated, err := maps.Update(t.Context(), created, metav1.UpdateOptions{})
	must(t, err)
	if updated.Data["colour"] != "red" || updated.ResourceVersion == stale.ResourceVersion {
		t.Fatalf("not updated: %+v", updated)
	}
	if _, err = maps.Update(t.Context(), stale, metav1.UpdateOptions{}); !errors.IsConflict(err) {
		t.Fatalf("an update of a stale object gave %v", err)
	}

	must(t, maps.Delete(t.Context(), "web", metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &created.UID},
	}))
	if _, err = maps.Get(t.Context(), "web", metav1.GetOptions{}); !errors.IsNotFound(err) {
		t.Fatalf("after the delete, a get gave %v", err)
	}
}

func TestEachKindOfPatchChangesWhatItNames(t *testing.T) {
	t.Parallel()
	client, namespace := typed(t)
	deployments := client.AppsV1().Deployments(namespace)
	_, err := deployments.Create(t.Context(), deployment("web", 0), metav1.CreateOptions{})
	must(t, err)

	for kind, patch := range map[types.PatchType]string{
		types.JSONPatchType:           `[{"op":"add","path":"/metadata/labels/json","value":"yes"}]`,
		types.MergePatchType:          `{"metadata":{"labels":{"merge":"yes"}}}`,
		types.StrategicMergePatchType: `{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"b"}]}}}}`,
	} {
		_, err := deployments.Patch(t.Context(), "web", kind, []byte(patch), metav1.PatchOptions{})
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
	}
	found, err := deployments.Get(t.Context(), "web", metav1.GetOptions{})
	must(t, err)
	if found.Labels["json"] != "yes" || found.Labels["merge"] != "yes" {
		t.Errorf("labels are %v", found.Labels)
	}
	if containers := found.Spec.Template.Spec.Containers; len(containers) != 2 {
		t.Errorf("the strategic patch did not merge by name: %+v", containers)
	}
}

func TestAConflictIsRetriedUntilItSucceeds(t *testing.T) {
	t.Parallel()
	client, namespace := typed(t)
	maps := client.CoreV1().ConfigMaps(namespace)
	_, err := maps.Create(t.Context(), configMap("web"), metav1.CreateOptions{})
	must(t, err)

	attempts := 0
	must(t, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		attempts++
		found, err := maps.Get(t.Context(), "web", metav1.GetOptions{})
		must(t, err)
		if attempts == 1 { // somebody else is faster, once
			other := found.DeepCopy()
			other.Data["colour"] = "green"
			_, err = maps.Update(t.Context(), other, metav1.UpdateOptions{})
			must(t, err)
		}
		found.Data["shape"] = "round"
		_, err = maps.Update(t.Context(), found, metav1.UpdateOptions{})
		return err
	}))
	found, err := maps.Get(t.Context(), "web", metav1.GetOptions{})
	must(t, err)
	if attempts != 2 || found.Data["colour"] != "green" || found.Data["shape"] != "round" {
		t.Fatalf("after %d attempts: %v", attempts, found.Data)
	}
}

func TestAListComesInPagesOfOneMoment(t *testing.T) {
	t.Parallel()
	client, namespace := typed(t)
	maps := client.CoreV1().ConfigMaps(namespace)
	for number := range 25 {
		_, err := maps.Create(t.Context(), configMap(fmt.Sprintf("page-%02d", number)), metav1.CreateOptions{})
		must(t, err)
	}
	options := metav1.ListOptions{Limit: 10, LabelSelector: "app=web"}
	var names, versions []string
	for {
		page, err := maps.List(t.Context(), options)
		must(t, err)
		if len(names) == 0 { // what comes after the first page is not part of the list
			_, err = maps.Create(t.Context(), configMap("page-99"), metav1.CreateOptions{})
			must(t, err)
		}
		for _, item := range page.Items {
			names = append(names, item.Name)
		}
		versions = append(versions, page.ResourceVersion)
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
	}
	if len(names) != 25 || names[24] != "page-24" || len(versions) != 3 || versions[0] != versions[2] {
		t.Fatalf("pages at %v gave %v", versions, names)
	}
}

func TestAWatchResumesWhereAListEnded(t *testing.T) {
	t.Parallel()
	client, namespace := typed(t)
	maps := client.CoreV1().ConfigMaps(namespace)
	list, err := maps.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	_, err = maps.Create(t.Context(), configMap("web"), metav1.CreateOptions{})
	must(t, err)
	must(t, maps.Delete(t.Context(), "web", metav1.DeleteOptions{}))

	options := metav1.ListOptions{ResourceVersion: list.ResourceVersion, LabelSelector: "app=web"}
	events, err := maps.Watch(t.Context(), options)
	must(t, err)
	defer events.Stop()
	for _, wanted := range []watch.EventType{watch.Added, watch.Deleted} {
		event := <-events.ResultChan()
		if event.Type != wanted || event.Object.(*corev1.ConfigMap).Name != "web" {
			t.Fatalf("wanted %s, got %+v", wanted, event)
		}
	}
}

func TestTheScaleClientReadsAndSetsReplicas(t *testing.T) {
	t.Parallel()
	client, namespace := typed(t)
	_, err := client.AppsV1().Deployments(namespace).Create(t.Context(), deployment("web", 1), metav1.CreateOptions{})
	must(t, err)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	kinds := scale.NewDiscoveryScaleKindResolver(client.Discovery())
	scales, err := scale.NewForConfig(connect(t), mapper, dynamic.LegacyAPIPathResolverFunc, kinds)
	must(t, err)

	resource := appsv1.Resource("deployments")
	must(t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		found, err := scales.Scales(namespace).Get(t.Context(), resource, "web", metav1.GetOptions{})
		must(t, err)
		if found.Spec.Replicas != 1 || found.Status.Selector != "app=web" {
			t.Fatalf("the scale is %+v", found)
		}
		found.Spec.Replicas = 2
		_, err = scales.Scales(namespace).Update(t.Context(), resource, found, metav1.UpdateOptions{})
		return err
	}))

	// The typed client has the same subresource. The controllers write too, so it may lose.
	deployments := client.AppsV1().Deployments(namespace)
	must(t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		same, err := deployments.GetScale(t.Context(), "web", metav1.GetOptions{})
		must(t, err)
		same.Spec.Replicas = 3
		_, err = deployments.UpdateScale(t.Context(), "web", same, metav1.UpdateOptions{})
		return err
	}))
	eventually(t, "three replicas are ready", func() bool {
		found, err := client.AppsV1().Deployments(namespace).Get(t.Context(), "web", metav1.GetOptions{})
		must(t, err)
		return found.Status.ReadyReplicas == 3
	})
}

func deployment(name string, replicas int32) *appsv1.Deployment {
	template := pod("")
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: template.Labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: template.Labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: template.Labels},
				Spec:       template.Spec,
			},
		},
	}
}
