// Package conformance drives the cluster that KUBECONFIG names with Kubernetes' own Go
// clients. Each test works in a namespace of its own, so that all run side by side.
package conformance

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// patience is how long anything that really happens may take on a slow machine.
const patience = 60 * time.Second

// connect reads the kubeconfig. The client's own rate limit is off: the tests share nothing.
func connect(t *testing.T) *rest.Config {
	t.Helper()
	path := os.Getenv("KUBECONFIG")
	if path == "" {
		t.Fatal("KUBECONFIG names no cluster; `cargo xtask conformance go` starts one")
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	must(t, err)
	config.QPS = -1
	return config
}

// typed gives a clientset and a new namespace.
func typed(t *testing.T) (*kubernetes.Clientset, string) {
	t.Helper()
	client, err := kubernetes.NewForConfig(connect(t))
	must(t, err)
	return client, namespace(t, client)
}

// namespace makes a namespace that goes when the test ends.
func namespace(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	wanted := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "conformance-"}}
	created, err := client.CoreV1().Namespaces().Create(t.Context(), wanted, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() {
		namespaces := client.CoreV1().Namespaces()
		_ = namespaces.Delete(context.Background(), created.Name, metav1.DeleteOptions{})
	})
	return created.Name
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually looks again until what is asked for holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("still not true after %v: %s", patience, what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "web"}},
		Data:       map[string]string{"colour": "blue"},
	}
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx:1.29"}}},
	}
}

// exchange is what a client asked for and the type of what it got.
type exchange struct {
	method, path      string
	query             url.Values
	sent, contentType string
	status            int
}

// recorder is a transport that remembers every exchange.
type recorder struct {
	next http.RoundTripper
	mu   sync.Mutex
	seen []exchange
}

// record puts a recorder into the configuration.
func record(config *rest.Config) *recorder {
	recorded := &recorder{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		recorded.next = next
		return recorded
	})
	return recorded
}

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, exchange{
		method:      request.Method,
		path:        request.URL.Path,
		query:       request.URL.Query(),
		sent:        request.Header.Get("Content-Type"),
		contentType: response.Header.Get("Content-Type"),
		status:      response.StatusCode,
	})
	return response, nil
}

// exchanges gives what was seen so far, of what the filter wants.
func (r *recorder) exchanges(wanted func(exchange) bool) []exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []exchange
	for _, one := range r.seen {
		if wanted(one) {
			found = append(found, one)
		}
	}
	return found
}
