package conformance

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
)

func TestBuiltInKindsTravelAsProtobuf(t *testing.T) {
	t.Parallel()
	config := connect(t)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf
	seen := record(config)
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	namespace := namespace(t, client)

	deployments := client.AppsV1().Deployments(namespace)
	events, err := deployments.Watch(t.Context(), metav1.ListOptions{})
	must(t, err)
	defer events.Stop()
	created, err := deployments.Create(t.Context(), deployment("web", 0), metav1.CreateOptions{})
	must(t, err)
	list, err := deployments.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(list.Items) != 1 || list.Items[0].Spec.Template.Spec.Containers[0].Image != "nginx:1.29" {
		t.Fatalf("the list holds %+v", list.Items)
	}
	event := <-events.ResultChan()
	if watched, is := event.Object.(*appsv1.Deployment); !is || watched.UID != created.UID {
		t.Fatalf("the watch gave %+v", event)
	}
	_, err = deployments.Get(t.Context(), "absent", metav1.GetOptions{})
	if !errors.IsNotFound(err) {
		t.Fatalf("the error came as %v", err)
	}
	for _, one := range seen.exchanges(func(one exchange) bool {
		return strings.Contains(one.path, "/deployments")
	}) {
		if !strings.HasPrefix(one.contentType, runtime.ContentTypeProtobuf) {
			t.Errorf("%s %s was answered with %s", one.method, one.path, one.contentType)
		}
		if one.method == "POST" && one.sent != runtime.ContentTypeProtobuf {
			t.Errorf("%s %s was sent as %s", one.method, one.path, one.sent)
		}
	}
}
