// What the tests share: clients for the cluster that KUBECONFIG names, and namespaces.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';

import * as k8s from '@kubernetes/client-node';

// How long anything that really happens may take on a slow machine, in milliseconds.
const PATIENCE = 60_000;

if (!process.env.KUBECONFIG) {
  throw new Error('KUBECONFIG names no cluster; `cargo xtask conformance javascript` starts one');
}

export const config = new k8s.KubeConfig();
config.loadFromFile(process.env.KUBECONFIG);

export const core = config.makeApiClient(k8s.CoreV1Api);
export const apps = config.makeApiClient(k8s.AppsV1Api);
export const objects = k8s.KubernetesObjectApi.makeApiClient(config);

// A namespace that goes when the test ends.
export async function namespaceFor(test) {
  const name = `javascript-${randomUUID().slice(0, 8)}`;
  await core.createNamespace({ body: { metadata: { name } } });
  test.after(() => core.deleteNamespace({ name }));
  return name;
}

// Looks again until what is asked for holds.
export async function eventually(what, holds) {
  for (const deadline = Date.now() + PATIENCE; !(await holds()); await pause(20)) {
    assert(Date.now() < deadline, `still not true after ${PATIENCE} ms: ${what}`);
  }
}

// The Status of a call that must fail with this code.
export async function refused(code, call) {
  const error = await call.then(
    () => assert.fail(`was to fail with ${code}`),
    (error) => error,
  );
  assert.equal(error.code, code, String(error));
  return typeof error.body === 'string' ? JSON.parse(error.body) : error.body;
}

export function configMap(name, data = { colour: 'blue' }) {
  return { metadata: { name, labels: { app: 'web' } }, data };
}

export function deployment(name, replicas) {
  const labels = { app: name };
  const containers = [{ name: 'web', image: 'nginx:1.29' }];
  const template = { metadata: { labels }, spec: { containers } };
  return { metadata: { name, labels }, spec: { replicas, selector: { matchLabels: labels }, template } };
}
