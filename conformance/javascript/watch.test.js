// Watches, informers and objects of any kind.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import * as k8s from '@kubernetes/client-node';

import { config, configMap, core, eventually, namespaceFor, objects, refused } from './cluster.js';

const ships = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'ships.javascript.example.com' },
  spec: {
    group: 'javascript.example.com',
    scope: 'Namespaced',
    names: { plural: 'ships', singular: 'ship', kind: 'Ship' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: { type: 'object', properties: { crew: { type: 'integer', minimum: 0 } } },
            },
          },
        },
      },
    ],
  },
};

test('a watch starts where a list ended', async (t) => {
  const namespace = await namespaceFor(t);
  const { metadata } = await core.listNamespacedConfigMap({ namespace });
  await core.createNamespacedConfigMap({ namespace, body: configMap('web') });
  await core.deleteNamespacedConfigMap({ namespace, name: 'web' });

  const seen = [];
  const ended = Promise.withResolvers();
  const request = await new k8s.Watch(config).watch(
    `/api/v1/namespaces/${namespace}/configmaps`,
    { resourceVersion: metadata.resourceVersion, labelSelector: 'app=web' },
    (type, object) => {
      seen.push(`${type} ${object.metadata.name}`);
      if (type === 'DELETED') ended.resolve();
    },
    (error) => ended.reject(error ?? new Error('the watch ended early')),
  );
  await ended.promise;
  request.abort();
  assert.deepEqual(seen, ['ADDED web', 'DELETED web']);
});

test('an informer keeps up with every change', async (t) => {
  const namespace = await namespaceFor(t);
  await core.createNamespacedConfigMap({ namespace, body: configMap('before') });
  const list = () => core.listNamespacedConfigMap({ namespace, labelSelector: 'app=web' });
  const path = `/api/v1/namespaces/${namespace}/configmaps`;
  const informer = k8s.makeInformer(config, path, list, 'app=web');
  const seen = [];
  for (const verb of ['add', 'update', 'delete']) {
    informer.on(verb, (object) => seen.push(`${verb} ${object.metadata.name}`));
  }
  const errors = [];
  informer.on('error', (error) => errors.push(error));
  await informer.start();
  t.after(() => informer.stop());

  const created = await core.createNamespacedConfigMap({ namespace, body: configMap('during') });
  created.data.colour = 'red';
  await core.replaceNamespacedConfigMap({ namespace, name: 'during', body: created });
  await eventually('the update is in the cache', () => informer.get('during', namespace)?.data.colour === 'red');
  await core.deleteNamespacedConfigMap({ namespace, name: 'during' });
  await eventually('the deletion arrived', () => seen.includes('delete during'));
  assert.deepEqual(seen, ['add before', 'add during', 'update during', 'delete during']);
  assert.deepEqual(informer.list().map((object) => object.metadata.name), ['before']);
  assert.deepEqual(errors, []);
});

test('objects of any kind are found by discovery', async (t) => {
  const namespace = await namespaceFor(t);
  await objects.create(ships);
  t.after(() => objects.delete(ships));
  await eventually('the definition is established', async () => {
    const { status } = await objects.read(ships);
    return status?.conditions?.some((one) => one.type === 'Established' && one.status === 'True');
  });
  const ship = (crew) => ({
    apiVersion: 'javascript.example.com/v1',
    kind: 'Ship',
    metadata: { name: 'fram', namespace },
    spec: { crew },
  });
  await objects.create(ship(3));
  await refused(422, objects.replace(ship(-1)));
  await objects.patch(ship(13), undefined, undefined, undefined, undefined, k8s.PatchStrategy.MergePatch);
  await objects.patch(ship(14), undefined, undefined, 'harbour', true, k8s.PatchStrategy.ServerSideApply);
  assert.equal((await objects.read(ship())).spec.crew, 14);
  const { items } = await objects.list('javascript.example.com/v1', 'Ship', namespace);
  assert.equal(items.length, 1);

  const custom = config.makeApiClient(k8s.CustomObjectsApi);
  const where = { group: 'javascript.example.com', version: 'v1', namespace, plural: 'ships' };
  const found = await custom.getNamespacedCustomObject({ ...where, name: 'fram' });
  assert.equal(found.spec.crew, 14);
  await objects.delete(ship());
  await refused(404, objects.read(ship()));
});

test('manifests are read and created', async (t) => {
  const namespace = await namespaceFor(t);
  const manifest = `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: ${namespace}}
spec: {ports: [{port: 80}], selector: {app: web}}
---
apiVersion: v1
kind: Secret
metadata: {name: web, namespace: ${namespace}}
stringData: {password: secret}
`;
  for (const object of k8s.loadAllYaml(manifest)) {
    await objects.create(object);
  }
  const secret = await core.readNamespacedSecret({ namespace, name: 'web' });
  assert.deepEqual(secret.data, { password: 'c2VjcmV0' });
});
