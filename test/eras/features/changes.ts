import { expect } from 'vitest';
import { noteUri } from '../../fixtures/eras/lists.ts';
import { isOf, paramsOf, textOf } from '../messages.ts';
import type { Peer } from '../peer.ts';
import type { Feature } from './feature.ts';

const toolsChanged = 'notifications/tools/list_changed';
const resourceUpdated = 'notifications/resources/updated';
const itemUri = 'test://item/followed';
const endUri = 'test://item/end';

export const changeFeatures: Feature[] = [
  {
    name: 'a new tool is announced, listed and called',
    async run(scene) {
      await using peer = await scene.connect();
      await peer.follow();
      const announced = peer.received.next(isOf(toolsChanged));
      const name = textOf(await peer.callTool('grow'));
      await announced;
      await untilListed(peer, name);
      expect(textOf(await peer.callTool(name))).toBe(`I am ${name}`);
      expectOneSubscription(peer, toolsChanged);
    },
  },
  {
    name: 'an updated resource is announced, and reads return the new content',
    async run(scene) {
      await using peer = await scene.connect();
      const uri = scene.uri(noteUri);
      await peer.readResource(uri);
      await peer.follow(uri);
      const now = textOf(await peer.callTool('touch'));
      expect((await peer.received.first(isOf(resourceUpdated))).params).toMatchObject({ uri });
      expect(await peer.readResource(uri)).toMatchObject([{ text: now }]);
      expectOneSubscription(peer, resourceUpdated);
    },
  },
  {
    name: 'an updated resource is not announced to subscribers of another',
    async run(scene) {
      await using ofNote = await scene.connect();
      await using ofItem = await scene.connect();
      const [note, item, end] = [noteUri, itemUri, endUri].map(scene.uri) as [string, string, string];
      await ofNote.follow(note, end);
      await ofItem.follow(item, end);
      // Notifications arrive in order, so the last one shows which did not come before it.
      for (const uri of [noteUri, itemUri, endUri]) {
        // Both, because a client over stdio has its own server process.
        for (const peer of [ofNote, ofItem]) await peer.callTool('touch', { uri });
      }
      await Promise.all([ofNote, ofItem].map((peer) => updated(peer, end)));
      await Promise.all([updated(ofNote, note), updated(ofItem, item)]);
      expect(updatedUris(ofNote)).toEqual(new Set([note, end]));
      expect(updatedUris(ofItem)).toEqual(new Set([item, end]));
    },
  },
];

function updated(peer: Peer, uri: string): Promise<unknown> {
  return peer.received.first(({ method, params }) => method === resourceUpdated && params?.uri === uri);
}

function updatedUris(peer: Peer): Set<unknown> {
  return new Set(paramsOf(peer, resourceUpdated).map(({ uri }) => uri));
}

async function untilListed(peer: Peer, name: string): Promise<void> {
  for (;;) {
    const announced = peer.received.next(isOf(toolsChanged));
    if ((await peer.toolNames()).includes(name)) return;
    await announced;
  }
}

/** In the modern era every notification names its subscription; the legacy era has no such ids. */
function expectOneSubscription(peer: Peer, method: string): void {
  const subscriptionIds = (of: string) =>
    paramsOf(peer, of).map(
      ({ _meta: meta }) =>
        (meta as Record<string, unknown> | undefined)?.['io.modelcontextprotocol/subscriptionId'],
    );
  const [acknowledged] = subscriptionIds('notifications/subscriptions/acknowledged');
  expect(new Set(subscriptionIds(method))).toEqual(new Set([acknowledged]));
  expect(typeof acknowledged).toBe(peer.era === 'modern' ? 'string' : 'undefined');
}
