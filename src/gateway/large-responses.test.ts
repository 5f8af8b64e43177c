import { describe, expect, it } from 'vitest';
import { turnsDuring } from '../../test/helpers/turns.ts';
import { Catalog } from '../catalog/catalog.ts';
import { AccessControl } from '../identity/access-control.ts';
import { Limiter } from '../identity/limiter.ts';
import { localUser } from '../identity/principal.ts';
import { type Chunks, join } from '../protocol/jsonrpc.ts';
import { LARGE_BYTES } from '../protocol/large-walk.ts';
import { readMessage } from '../protocol/message-reader.ts';
import { findResponseId } from '../protocol/response.ts';
import type { Era } from '../protocol/versions.ts';
import { Group } from '../upstreams/group.ts';
import type { RoutedRequest } from '../upstreams/routed-request.ts';
import type { Caller } from './caller.ts';
import { ClientCall } from './client-call.ts';
import { HeldCalls } from './crossing/held-calls.ts';
import { mapLargeResponse } from './large-responses.ts';
import { RequestStates } from './modern/request-state.ts';
import { TaskIds } from './modern/tasks.ts';
import type { Responder } from './responder.ts';
import { mapResponse, type ResponseContext } from './response-mapping.ts';

const group = new Group('notes', { id: 'p', name: 'p' }, () => {});
const states = new RequestStates(1_000);
const taskIds = new TaskIds(Buffer.from('key'));
const lists = { tools: [], resources: [{ uri: 'b:/1' }], templates: [], prompts: [] };
const other = { server: 'other', qualifier: 'other', prefix: 'other', ...lists };
const catalog = new Catalog(
  [
    {
      qualifier: 'other',
      group: 'other',
      project: undefined,
      prefix: 'other',
      servers: [other],
      reserved: { tools: [], prompts: [] },
    },
  ],
  { mode: 'on-conflict', separator: '__', pageSize: 0, maxItems: 10 },
);

function callerOf(era: Era, awaitsOthers = () => false): Caller {
  return {
    era,
    identity: { era },
    name: 'x',
    principal: localUser(),
    facts: { capabilities: {}, name: 'x' },
    sender: undefined,
    serverRequests: undefined,
    listedAt: undefined,
    listed() {},
    isFull: false,
    begin: () => true,
    finish: () => true,
    awaitsOthersThan: awaitsOthers,
    wantsLog: () => false,
  };
}

describe('a large response', () => {
  const link = '{"type":"resource_link","uri":"a:1","name":"x"}';
  const bodies = {
    links: `"result":{"resultType":"complete","content":[${link},${link}],"ttlMs":0}`,
    'no type': `"result": {"content":[{"type":"resource","resource":{"uri":"ui://x"}}]}`,
    contents: '"result":{"contents":[{"uri":"a:1"}],"ttlMs":5,"cacheScope":"public"}',
    'a link to another': `"result":{"content":[{"type":"resource_link","uri":"b:\\/1"}]}`,
    'an empty result': '"result":{ }',
    'no object': '"result":[1]',
  };
  const eras: Era[] = ['legacy', 'modern'];
  const cases = eras.flatMap((era) =>
    eras.flatMap((serverEra) => Object.keys(bodies).map((name) => [era, serverEra, name] as const)),
  );

  it.each(cases)('for a %s client equals a small one of a %s server: %s', async (era, serverEra, name) => {
    const body = bodies[name as keyof typeof bodies];
    for (const [text, place] of [
      [`{"jsonrpc":"2.0","id":7,${body}}`, 34],
      [`{"jsonrpc":"2.0",${body},"id":7}\n`, 27],
    ] as const) {
      for (const method of ['tools/call', 'resources/read']) {
        const whole = Buffer.from(text);
        const chunks = [whole.subarray(0, place), whole.subarray(place)];
        const call: ResponseContext = {
          ...{ serverEra, caller: callerOf(era), isVerified: true, replica: undefined },
          ...{
            context: { group, qualifier: 'notes', catalog, project: undefined },
            message: readMessage(Buffer.from(`{"jsonrpc":"2.0","id":"mine","method":"${method}"}`)),
            services: { states, taskIds },
          },
          binding: () => '',
        };
        const at = findResponseId(chunks)!;
        const { message, errorCode, check } = await mapLargeResponse(chunks, at, call);
        const small = mapResponse([whole], findResponseId([whole])!, call);
        expect(JSON.parse(join(message).toString())).toEqual(JSON.parse(join(small.message).toString()));
        expect(errorCode).toBe(small.errorCode);
        if (name === 'a link to another' && method === 'tools/call')
          expect(join(message).toString()).toContain(String.raw`"resource://other/b:\/1"`);
        expect(check).not.toThrow();
      }
    }
  });
});

describe('a call with a large response', () => {
  const link = '{"type":"resource_link","uri":"a:1","name":"x"},';
  const links = Math.ceil(LARGE_BYTES / link.length);
  const content = `[${link.repeat(links)}{"type":"text","text":""}]`;
  const answer = (more = '') =>
    Buffer.from(`{"jsonrpc":"2.0","id":7,"result":{"content":${content}}${more}}`);

  function begin(awaitsOthers?: () => boolean, era: Era = 'legacy') {
    const said: Chunks[] = [];
    const outcomes: string[] = [];
    let ended = () => {};
    const over = new Promise<void>((resolve) => {
      ended = resolve;
    });
    const responder: Responder = {
      event: (message) => said.push(message),
      respond: (message) => {
        said.push(message);
        ended();
      },
      end: () => ended(),
      pause() {},
      keepAlive() {},
      isBatch: false,
      takesEvents: true,
    };
    const message = readMessage(
      Buffer.from('{"jsonrpc":"2.0","id":"mine","method":"tools/call","params":{"name":"x"}}'),
    );
    const recorder = {
      keepsPayloads: () => false,
      record: ({ outcome }: { outcome: string }) => outcomes.push(outcome),
    };
    const call = new ClientCall(
      {
        ...{ caller: callerOf(era, awaitsOthers), message, responder },
        ...{ address: undefined, prefer: undefined, projects: undefined },
      },
      {
        ...{ recorder, held: new HeldCalls(1, 1_000), states, taskIds, inputWaitMs: 1_000 },
        ...{ access: new AccessControl(() => {}), limiter: new Limiter() },
      },
      { group, qualifier: 'notes', catalog: undefined, project: undefined },
      { own: 'x' } as RoutedRequest,
      undefined,
    );
    const answered = (bytes: Buffer) => call.onResponse([bytes], findResponseId([bytes])!);
    return { call, said, outcomes, over, answered };
  }

  it('yields to other work, and gets the same response as any other', async () => {
    const { answered, said, outcomes, over } = begin();
    answered(answer());
    expect(said.length).toBe(0);
    expect(await turnsDuring(over)).toBeGreaterThanOrEqual(16);
    const { id, result } = JSON.parse(join(said[0]!).toString());
    expect(id).toBe('mine');
    expect(result.content).toHaveLength(links + 1);
    expect(result.content[0].uri).toBe('resource://notes/a:1');
    expect(result.content.at(-2)).toEqual(result.content[0]);
    expect(outcomes).toEqual(['answered']);
  });

  it('that is cancelled meanwhile is dropped', async () => {
    const { call, answered, said, outcomes, over } = begin();
    answered(answer());
    call.cancel(undefined);
    await over;
    const after = begin();
    after.answered(answer());
    await after.over;
    expect(said.length).toBe(0);
    expect(outcomes).toEqual(['cancelled']);
  });

  it('must get the response of its own server, even if the client awaits others meanwhile', async () => {
    let awaitsOthers = false;
    const { answered, said, over } = begin(() => awaitsOthers);
    answered(answer(',"id":8'));
    awaitsOthers = true;
    await over;
    expect(JSON.parse(join(said[0]!).toString()).error.message).toMatch(/sent an invalid response/);
  });

  it('fails if the response is not JSON', async () => {
    const { answered, said, outcomes, over } = begin();
    answered(answer(',,'));
    await over;
    expect(JSON.parse(join(said[0]!).toString()).error.message).toMatch(
      /sent an invalid response: .*at byte/,
    );
    expect(outcomes).toEqual(['failed']);
  });

  it('fails if the response is an error that must be parsed', async () => {
    const { answered, said, outcomes, over } = begin(undefined, 'modern');
    const data = `[${'1e1,'.repeat(LARGE_BYTES / 4)}1]`;
    answered(Buffer.from(`{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x","data":${data}}}`));
    await over;
    expect(JSON.parse(join(said[0]!).toString()).error.message).toMatch(/sent an invalid response: .*values/);
    expect(outcomes).toEqual(['failed']);
  });
});
