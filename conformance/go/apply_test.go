package conformance

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
)

// web is a deployment as one manager wants it.
func web(namespace, image string) *appsapply.DeploymentApplyConfiguration {
	labels := map[string]string{"app": "web"}
	container := coreapply.Container().WithName("web").WithImage(image)
	template := coreapply.PodTemplateSpec().WithLabels(labels).WithSpec(coreapply.PodSpec().WithContainers(container))
	spec := appsapply.DeploymentSpec().WithTemplate(template).
		WithSelector(metaapply.LabelSelector().WithMatchLabels(labels))
	return appsapply.Deployment("web", namespace).WithSpec(spec)
}

func TestTwoManagersShareAnObjectByApply(t *testing.T) {
	t.Parallel()
	client, namespace := typed(t)
	deployments := client.AppsV1().Deployments(namespace)
	builder := metav1.ApplyOptions{FieldManager: "builder"}
	scaler := metav1.ApplyOptions{FieldManager: "scaler"}

	_, err := deployments.Apply(t.Context(), web(namespace, "nginx:1"), builder)
	must(t, err)
	replicas := appsapply.Deployment("web", namespace).WithSpec(appsapply.DeploymentSpec().WithReplicas(0))
	scaled, err := deployments.Apply(t.Context(), replicas, metav1.ApplyOptions{FieldManager: "scaler", Force: true})
	must(t, err)
	if *scaled.Spec.Replicas != 0 || scaled.Spec.Template.Spec.Containers[0].Image != "nginx:1" {
		t.Fatalf("the two did not merge: %+v", scaled.Spec)
	}

	// Each keeps what it owns, and is told who owns the rest.
	changed, err := deployments.Apply(t.Context(), web(namespace, "nginx:2"), builder)
	must(t, err)
	if *changed.Spec.Replicas != 0 || changed.Spec.Template.Spec.Containers[0].Image != "nginx:2" {
		t.Fatalf("the builder's change took something: %+v", changed.Spec)
	}
	_, err = deployments.Apply(t.Context(), web(namespace, "nginx:3"), scaler)
	if !errors.IsConflict(err) || !strings.Contains(err.Error(), `conflict with "builder"`) {
		t.Fatalf("a foreign field was taken: %v", err)
	}

	// What its manager no longer names goes.
	labelled := web(namespace, "nginx:2").WithLabels(map[string]string{"tier": "front"})
	_, err = deployments.Apply(t.Context(), labelled, builder)
	must(t, err)
	bare, err := deployments.Apply(t.Context(), web(namespace, "nginx:2"), builder)
	must(t, err)
	if _, has := bare.Labels["tier"]; has {
		t.Fatalf("an abandoned label stays: %v", bare.Labels)
	}
}

func TestAnExtractedConfigurationIsWhatTheManagerApplied(t *testing.T) {
	t.Parallel()
	client, namespace := typed(t)
	deployments := client.AppsV1().Deployments(namespace)
	options := metav1.ApplyOptions{FieldManager: "builder"}
	_, err := deployments.Apply(t.Context(), web(namespace, "nginx:1"), options)
	must(t, err)
	found, err := deployments.Get(t.Context(), "web", metav1.GetOptions{})
	must(t, err)

	mine, err := appsapply.ExtractDeployment(found, "builder")
	must(t, err)
	if mine.Spec.Replicas != nil || mine.Spec.Strategy != nil {
		t.Errorf("it holds defaults that nobody applied: %+v", mine.Spec)
	}
	if container := mine.Spec.Template.Spec.Containers[0]; *container.Image != "nginx:1" || container.ImagePullPolicy != nil {
		t.Errorf("its container is %+v", container)
	}
	mine.Spec.Template.Spec.Containers[0].WithImage("nginx:2")
	changed, err := deployments.Apply(t.Context(), mine, options)
	must(t, err)
	if changed.Spec.Template.Spec.Containers[0].Image != "nginx:2" {
		t.Errorf("what was extracted cannot be applied: %+v", changed.Spec.Template.Spec)
	}
}

func TestStatusIsAppliedApartFromTheSpec(t *testing.T) {
	t.Parallel()
	client, namespace := typed(t)
	services := client.CoreV1().Services(namespace)
	options := metav1.ApplyOptions{FieldManager: "balancer"}
	port := coreapply.ServicePort().WithPort(80).WithProtocol(corev1.ProtocolTCP)
	spec := coreapply.ServiceSpec().WithType(corev1.ServiceTypeLoadBalancer).WithPorts(port)
	created, err := services.Apply(t.Context(), coreapply.Service("web", namespace).WithSpec(spec), options)
	must(t, err)
	again, err := services.Apply(t.Context(), coreapply.Service("web", namespace).WithSpec(spec), options)
	must(t, err)
	if again.ResourceVersion != created.ResourceVersion {
		t.Fatal("applying the same again wrote something")
	}

	ingress := coreapply.LoadBalancerIngress().WithIP("192.0.2.1")
	status := coreapply.ServiceStatus().WithLoadBalancer(coreapply.LoadBalancerStatus().WithIngress(ingress))
	_, err = services.ApplyStatus(t.Context(), coreapply.Service("web", namespace).WithStatus(status), options)
	must(t, err)
	found, err := services.Get(t.Context(), "web", metav1.GetOptions{})
	must(t, err)
	if found.Spec.Ports[0].Port != 80 || found.Status.LoadBalancer.Ingress[0].IP != "192.0.2.1" {
		t.Fatalf("the service is %+v", found)
	}
	subresources := map[string]bool{}
	for _, entry := range found.ManagedFields {
		subresources[entry.Subresource] = true
	}
	if !subresources[""] || !subresources["status"] {
		t.Fatalf("the owners are %+v", found.ManagedFields)
	}
}
