"""The generated classes: every verb, every kind of patch, watches."""

import json

from cluster import ClusterTest, eventually
from kubernetes import client, watch


class Typed(ClusterTest):
    def test_objects_are_created_read_changed_and_deleted(self):
        created = self.core.create_namespaced_config_map(self.namespace, self.config_map("web"))
        self.assertTrue(created.metadata.uid and created.metadata.creation_timestamp)
        error = self.refused(409, self.core.create_namespaced_config_map, self.namespace, self.config_map("web"))
        self.assertEqual("AlreadyExists", json.loads(error.body)["reason"])

        stale = self.core.read_namespaced_config_map("web", self.namespace)
        created.data["colour"] = "red"
        updated = self.core.replace_namespaced_config_map("web", self.namespace, created)
        self.assertEqual("red", updated.data["colour"])
        error = self.refused(409, self.core.replace_namespaced_config_map, "web", self.namespace, stale)
        self.assertEqual("Conflict", json.loads(error.body)["reason"])

        listed = self.core.list_namespaced_config_map(self.namespace, label_selector="app=web")
        self.assertEqual(["web"], [item.metadata.name for item in listed.items])
        self.core.delete_namespaced_config_map("web", self.namespace, body=client.V1DeleteOptions())
        self.refused(404, self.core.read_namespaced_config_map, "web", self.namespace)

    def test_a_mistake_is_told_with_its_field(self):
        wrong = self.deployment("web", -1)
        error = self.refused(422, self.apps.create_namespaced_deployment, self.namespace, wrong)
        causes = json.loads(error.body)["details"]["causes"]
        self.assertIn("spec.replicas", [cause["field"] for cause in causes])

    def test_each_kind_of_patch_changes_what_it_names(self):
        self.apps.create_namespaced_deployment(self.namespace, self.deployment("web", 0))
        patches = {
            "application/json-patch+json": [{"op": "add", "path": "/metadata/labels/json", "value": "yes"}],
            "application/merge-patch+json": {"metadata": {"labels": {"merge": "yes"}}},
            "application/strategic-merge-patch+json": {
                "spec": {"template": {"spec": {"containers": [{"name": "side", "image": "busybox"}]}}}
            },
        }
        for content_type, patch in patches.items():
            self.apps.patch_namespaced_deployment("web", self.namespace, patch, _content_type=content_type)
        found = self.apps.read_namespaced_deployment("web", self.namespace)
        self.assertEqual({"app": "web", "json": "yes", "merge": "yes"}, found.metadata.labels)
        names = {container.name for container in found.spec.template.spec.containers}
        self.assertEqual({"web", "side"}, names)

    def test_apply_owns_fields_and_meets_conflicts(self):
        def apply(manager, data, **options):
            body = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "web", "namespace": self.namespace},
                "data": data,
            }
            return self.core.patch_namespaced_config_map(
                "web", self.namespace, body, field_manager=manager,
                _content_type="application/apply-patch+yaml", **options,
            )

        apply("ours", {"colour": "blue", "shape": "round"})
        error = self.refused(409, apply, "theirs", {"colour": "red"})
        self.assertIn('conflict with "ours"', json.loads(error.body)["message"])
        apply("theirs", {"colour": "red"}, force=True)
        merged = apply("ours", {})
        self.assertEqual({"colour": "red"}, merged.data)

    def test_status_and_scale_are_apart(self):
        self.apps.create_namespaced_deployment(self.namespace, self.deployment("web", 1))
        patch = {"spec": {"replicas": 2}}
        scale = self.apps.patch_namespaced_deployment_scale("web", self.namespace, patch)
        self.assertEqual(2, scale.spec.replicas)
        self.assertEqual("app=web", scale.status.selector)

        def ready():
            status = self.apps.read_namespaced_deployment_status("web", self.namespace).status
            return status.ready_replicas == 2

        eventually("two replicas are ready", ready)
        pods = self.core.list_namespaced_pod(self.namespace, field_selector="status.phase=Running")
        self.assertEqual(2, len(pods.items))

    def test_a_watch_starts_where_a_list_ended(self):
        listed = self.core.list_namespaced_config_map(self.namespace)
        self.core.create_namespaced_config_map(self.namespace, self.config_map("web"))
        self.core.patch_namespaced_config_map("web", self.namespace, {"data": {"colour": "red"}})
        self.core.delete_namespaced_config_map("web", self.namespace)

        stream = watch.Watch()
        seen = []
        for event in stream.stream(
            self.core.list_namespaced_config_map, self.namespace, label_selector="app=web",
            resource_version=listed.metadata.resource_version, timeout_seconds=60,
        ):
            seen.append((event["type"], event["object"].data["colour"]))
            if event["type"] == "DELETED":
                stream.stop()
        self.assertEqual([("ADDED", "blue"), ("MODIFIED", "red"), ("DELETED", "red")], seen)

    def test_a_watch_without_a_version_begins_with_what_is_there(self):
        self.core.create_namespaced_config_map(self.namespace, self.config_map("web"))
        stream = watch.Watch()
        for event in stream.stream(
            self.core.list_namespaced_config_map, self.namespace, label_selector="app=web", timeout_seconds=60
        ):
            self.assertEqual(("ADDED", "web"), (event["type"], event["object"].metadata.name))
            stream.stop()

    def test_lists_come_in_pages(self):
        for number in range(5):
            self.core.create_namespaced_config_map(self.namespace, self.config_map(f"page-{number}"))
        names, token = [], None
        while token != "":
            page = self.core.list_namespaced_config_map(
                self.namespace, limit=2, label_selector="app=web", _continue=token
            )
            names += [item.metadata.name for item in page.items]
            token = page.metadata._continue or ""
        self.assertEqual([f"page-{number}" for number in range(5)], names)

    def test_pods_are_evicted_and_collections_deleted(self):
        pod = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        self.core.create_namespaced_pod(self.namespace, pod)
        eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name="web", namespace=self.namespace))
        self.core.create_namespaced_pod_eviction("web", self.namespace, eviction)
        eventually("the pod is gone", lambda: not self.core.list_namespaced_pod(self.namespace).items)
        for name in ("a", "b"):
            self.core.create_namespaced_config_map(self.namespace, self.config_map(name))
        self.core.delete_collection_namespaced_config_map(self.namespace, label_selector="app=web")
        left = self.core.list_namespaced_config_map(self.namespace, label_selector="app=web")
        self.assertEqual([], left.items)

    def test_reviews_and_versions_answer(self):
        version = client.VersionApi(self.api).get_code()
        self.assertEqual("1", version.major)
        review = client.AuthenticationV1Api(self.api).create_self_subject_review({})
        self.assertIn("system:authenticated", review.status.user_info.groups)
        groups = {group.name for group in client.ApisApi(self.api).get_api_versions().groups}
        self.assertLessEqual({"apps", "batch", "policy"}, groups)
