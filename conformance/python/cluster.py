"""What the tests share: a client for the cluster that KUBECONFIG names, and a namespace."""

import os
import time
import unittest
import uuid

from kubernetes import client, config

# How long anything that really happens may take on a slow machine, in seconds.
PATIENCE = 60


def eventually(what, holds):
    """Looks again until what is asked for holds."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"still not true after {PATIENCE} s: {what}")
        time.sleep(0.02)


class ClusterTest(unittest.TestCase):
    """A test with a namespace of its own."""

    @classmethod
    def setUpClass(cls):
        if "KUBECONFIG" not in os.environ:
            raise RuntimeError("KUBECONFIG names no cluster; `cargo xtask conformance python` starts one")
        cls.api = config.new_client_from_config()
        cls.core = client.CoreV1Api(cls.api)
        cls.apps = client.AppsV1Api(cls.api)

    @classmethod
    def tearDownClass(cls):
        cls.api.close()

    def setUp(self):
        self.namespace = f"python-{uuid.uuid4().hex[:10]}"
        self.core.create_namespace({"metadata": {"name": self.namespace}})
        self.addCleanup(self.core.delete_namespace, self.namespace)

    def refused(self, code, call, *arguments, **options):
        """The error of a call that must fail with this code."""
        with self.assertRaises(client.ApiException) as caught:
            call(*arguments, **options)
        self.assertEqual(code, caught.exception.status, caught.exception.body)
        return caught.exception

    @staticmethod
    def config_map(name, **labels):
        return client.V1ConfigMap(
            metadata=client.V1ObjectMeta(name=name, labels={"app": "web", **labels}),
            data={"colour": "blue"},
        )

    @staticmethod
    def deployment(name, replicas):
        labels = {"app": name}
        container = client.V1Container(name="web", image="nginx:1.29")
        return client.V1Deployment(
            metadata=client.V1ObjectMeta(name=name, labels=labels),
            spec=client.V1DeploymentSpec(
                replicas=replicas,
                selector=client.V1LabelSelector(match_labels=labels),
                template=client.V1PodTemplateSpec(
                    metadata=client.V1ObjectMeta(labels=labels),
                    spec=client.V1PodSpec(containers=[container]),
                ),
            ),
        )
