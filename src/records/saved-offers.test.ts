import { expect, it } from 'vitest';
import type { ServerConfig } from '../config.ts';
import type { OfferRow } from '../store/restart-state.ts';
import type { Server } from '../upstreams/server.ts';
import { SavedOffers } from './saved-offers.ts';

const limits = { listItems: 10_000, listBytes: 10_000_000 };
const config = { name: 'notes', transport: { type: 'http', url: 'http://one/' } } as unknown as ServerConfig;

function serverWith(tool: object, more: object = {}): Server {
  return {
    name: 'notes',
    project: { id: 'p', name: 'p' },
    config,
    condition: { state: 'ready' },
    offer: { tools: [tool], resources: [], templates: [], prompts: [] },
    facts: { instructions: 'Read.', capabilities: { extensions: { x: {} } } },
    ...more,
  } as unknown as Server;
}

function open(rows = new Map<string, OfferRow>()) {
  const done: string[] = [];
  const warnings: string[] = [];
  const offers = new SavedOffers({
    table: {
      all: async () => [...rows.values()],
      async save([row]) {
        done.push('keep');
        rows.set(row!.server_name, row!);
      },
      async touch() {
        done.push('see');
      },
    },
    limits,
    redact: (_, text) => text.replaceAll('s3cret', '***'),
    warned: (message) => warnings.push(message),
  });
  return { offers, rows, done, warnings };
}

it('restores the offer of a server exactly, once', async () => {
  const { offers, rows } = open();
  const tool = { name: 'add', annotations: { title: '\0\ud800 ü' } };
  offers.update(serverWith(tool));
  await offers.close();
  const { offers: next } = open(rows);
  await next.load();
  expect(next.restore('p', config)).toEqual({
    offer: { tools: [tool], resources: [], templates: [], prompts: [] },
    instructions: 'Read.',
    extensions: { x: {} },
  });
  expect(next.restore('p', config)).toBeUndefined();
});

it('has no offer for a server with another transport, or of another project', async () => {
  const { offers, rows } = open();
  offers.update(serverWith({ name: 'add' }));
  await offers.close();
  const { offers: next } = open(rows);
  await next.load();
  expect(next.restore('q', config)).toBeUndefined();
  const other = { ...config, transport: { type: 'http', url: 'http://two/' } } as unknown as ServerConfig;
  expect(next.restore('p', other)).toBeUndefined();
});

it('writes only changes', async () => {
  const { offers, rows, done } = open();
  offers.update(serverWith({ name: 'add' }));
  await offers.close();
  offers.update(serverWith({ name: 'add' }));
  await offers.close();
  expect(done).toEqual(['keep']);
  const { offers: next, done: then } = open(rows);
  await next.load();
  for (const name of ['add', 'add', 'subtract']) {
    next.update(serverWith({ name }));
    await next.close();
  }
  expect(then).toEqual(['see', 'keep']);
});

it('writes nothing of a server that is not ready, reveals a secret, or offers too much', async () => {
  const { offers, done } = open();
  offers.update(serverWith({ name: 'add' }, { condition: { state: 'backing_off' } }));
  offers.update(serverWith({ name: 'add', description: 'use s3cret' }));
  offers.update(serverWith({ name: 'add', description: 'x'.repeat(5_000_000) }));
  await offers.close();
  expect(done).toEqual([]);
});

it('starts without unreadable rows', async () => {
  const row = { project_id: 'p', server_name: 'notes', fingerprint: 'x', offer: '{"result":' };
  const { offers, warnings } = open(new Map([['notes', row]]));
  await offers.load();
  expect(offers.restore('p', config)).toBeUndefined();
  expect(warnings).toEqual([expect.stringContaining('The saved lists of "notes" could not be restored')]);
});
