// The generated classes: every verb and every kind of patch.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import * as k8s from '@kubernetes/client-node';

import { apps, config, configMap, core, deployment, eventually, namespaceFor, refused } from './cluster.js';

const as = (type) => k8s.setHeaderOptions('Content-Type', type);

test('objects are created, read, changed and deleted', async (t) => {
  const namespace = await namespaceFor(t);
  const created = await core.createNamespacedConfigMap({ namespace, body: configMap('web') });
  assert(created.metadata.uid && created.metadata.creationTimestamp instanceof Date);
  const exists = await refused(409, core.createNamespacedConfigMap({ namespace, body: configMap('web') }));
  assert.equal(exists.reason, 'AlreadyExists');

  const stale = await core.readNamespacedConfigMap({ namespace, name: 'web' });
  created.data.colour = 'red';
  const updated = await core.replaceNamespacedConfigMap({ namespace, name: 'web', body: created });
  assert.equal(updated.data.colour, 'red');
  const conflict = await refused(409, core.replaceNamespacedConfigMap({ namespace, name: 'web', body: stale }));
  assert.equal(conflict.reason, 'Conflict');

  const list = await core.listNamespacedConfigMap({ namespace, labelSelector: 'app=web' });
  assert.deepEqual(list.items.map((item) => item.metadata.name), ['web']);
  await core.deleteNamespacedConfigMap({ namespace, name: 'web' });
  await refused(404, core.readNamespacedConfigMap({ namespace, name: 'web' }));
});

test('a mistake is told with its field', async (t) => {
  const namespace = await namespaceFor(t);
  const status = await refused(422, apps.createNamespacedDeployment({ namespace, body: deployment('web', -1) }));
  assert(status.details.causes.some((cause) => cause.field === 'spec.replicas'));
});

test('each kind of patch changes what it names', async (t) => {
  const namespace = await namespaceFor(t);
  await apps.createNamespacedDeployment({ namespace, body: deployment('web', 0) });
  const side = { name: 'side', image: 'busybox' };
  const patches = {
    [k8s.PatchStrategy.JsonPatch]: [{ op: 'add', path: '/metadata/labels/json', value: 'yes' }],
    [k8s.PatchStrategy.MergePatch]: { metadata: { labels: { merge: 'yes' } } },
    [k8s.PatchStrategy.StrategicMergePatch]: { spec: { template: { spec: { containers: [side] } } } },
  };
  for (const [type, body] of Object.entries(patches)) {
    await apps.patchNamespacedDeployment({ namespace, name: 'web', body }, as(type));
  }
  const found = await apps.readNamespacedDeployment({ namespace, name: 'web' });
  assert.deepEqual(found.metadata.labels, { app: 'web', json: 'yes', merge: 'yes' });
  const names = found.spec.template.spec.containers.map((container) => container.name);
  assert.deepEqual(names.sort(), ['side', 'web']);
});

test('apply owns fields and meets conflicts', async (t) => {
  const namespace = await namespaceFor(t);
  const apply = (fieldManager, data, force) => {
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'web', namespace }, data };
    const request = { namespace, name: 'web', body, fieldManager, force };
    return core.patchNamespacedConfigMap(request, as(k8s.PatchStrategy.ServerSideApply));
  };
  await apply('ours', { colour: 'blue', shape: 'round' });
  const conflict = await refused(409, apply('theirs', { colour: 'red' }));
  assert.match(conflict.message, /conflict with "ours"/);
  await apply('theirs', { colour: 'red' }, true);
  assert.deepEqual((await apply('ours', {})).data, { colour: 'red' });
});

test('a deployment is scaled and its pods run', async (t) => {
  const namespace = await namespaceFor(t);
  await apps.createNamespacedDeployment({ namespace, body: deployment('web', 1) });
  const body = { spec: { replicas: 2 } };
  const request = { namespace, name: 'web', body };
  const scale = await apps.patchNamespacedDeploymentScale(request, as(k8s.PatchStrategy.MergePatch));
  assert.equal(scale.spec.replicas, 2);
  await eventually('two replicas are ready', async () => {
    const { status } = await apps.readNamespacedDeploymentStatus({ namespace, name: 'web' });
    return status.readyReplicas === 2;
  });
  const pods = await core.listNamespacedPod({ namespace, fieldSelector: 'status.phase=Running' });
  assert.equal(pods.items.length, 2);
  await core.createNamespacedPodEviction({
    namespace,
    name: pods.items[0].metadata.name,
    body: { metadata: { name: pods.items[0].metadata.name } },
  });
});

test('lists come in pages', async (t) => {
  const namespace = await namespaceFor(t);
  for (const number of [0, 1, 2, 3, 4]) {
    await core.createNamespacedConfigMap({ namespace, body: configMap(`page-${number}`) });
  }
  const names = [];
  let token;
  do {
    const page = await core.listNamespacedConfigMap({ namespace, limit: 2, labelSelector: 'app=web', _continue: token });
    names.push(...page.items.map((item) => item.metadata.name));
    token = page.metadata._continue;
  } while (token);
  assert.deepEqual(names, ['page-0', 'page-1', 'page-2', 'page-3', 'page-4']);
});

test('the version and the groups answer', async () => {
  const version = await config.makeApiClient(k8s.VersionApi).getCode();
  assert.equal(version.major, '1');
  const { groups } = await config.makeApiClient(k8s.ApisApi).getAPIVersions();
  assert(groups.some((group) => group.name === 'apps'));
});
