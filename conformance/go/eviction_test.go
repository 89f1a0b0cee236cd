package conformance

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

func TestAnEvictionRespectsADisruptionBudget(t *testing.T) {
	t.Parallel()
	client, namespace := typed(t)
	created, err := client.CoreV1().Pods(namespace).Create(t.Context(), pod("web"), metav1.CreateOptions{})
	must(t, err)
	budgets := client.PolicyV1().PodDisruptionBudgets(namespace)
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(1)),
			Selector:     &metav1.LabelSelector{MatchLabels: created.Labels},
		},
	}
	_, err = budgets.Create(t.Context(), budget, metav1.CreateOptions{})
	must(t, err)
	eventually(t, "the pod runs", func() bool {
		found, err := client.CoreV1().Pods(namespace).Get(t.Context(), "web", metav1.GetOptions{})
		must(t, err)
		return found.Status.Phase == corev1.PodRunning
	})

	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace}}
	// The client's own method would try again for minutes, as it is told to.
	err = client.PolicyV1().RESTClient().Post().AbsPath("/api/v1").Namespace(namespace).
		Resource("pods").Name("web").SubResource("eviction").
		Body(eviction).MaxRetries(0).Do(t.Context()).Error()
	if !errors.IsTooManyRequests(err) {
		t.Fatalf("an eviction against the budget gave %v", err)
	}
	must(t, budgets.Delete(t.Context(), "web", metav1.DeleteOptions{}))
	must(t, client.PolicyV1().Evictions(namespace).Evict(t.Context(), eviction))
	eventually(t, "the evicted pod is gone", func() bool {
		_, err := client.CoreV1().Pods(namespace).Get(t.Context(), "web", metav1.GetOptions{})
		return errors.IsNotFound(err)
	})
}
