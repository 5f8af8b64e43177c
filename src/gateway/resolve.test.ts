import { expect, it } from 'vitest';
import { readMessage } from '../protocol/envelope.ts';
import { type AbsentServer, unknownTarget } from './resolve.ts';

function refusal(absent: Pick<AbsentServer, 'name' | 'project'>[], similar: string[] = []) {
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'gret' } };
  const { message, data } = unknownTarget(readMessage(Buffer.from(JSON.stringify(call))), {
    absent: () => absent.map((server) => ({ ...server, qualifier: `${server.name}__`, why: '' })),
    isSwitchedOff: () => false,
    disabledOwner: () => undefined,
    isOfKnown: () => false,
    catalog: { similar: () => similar },
  });
  return { message, data };
}

const of = (project: string | undefined, ...names: string[]) => names.map((name) => ({ name, project }));

it('of servers that nobody knows yet a few are named', () => {
  expect(refusal(of(undefined, 'a', 'b', 'c')).message).toBe(
    'Unknown tool: gret (not known yet: what "a", "b", "c" offers)',
  );
  expect(refusal(of(undefined, 'a', 'b', 'c', 'd', 'e'))).toEqual({
    message: 'Unknown tool: gret (not known yet: what "a", "b", "c" and 2 more offer)',
    data: { absent: ['a', 'b', 'c'] },
  });
});

it('those of one name in several projects are told apart', () => {
  expect(refusal([...of('default', 'go'), ...of('other', 'go')])).toEqual({
    message:
      'Unknown tool: gret (not known yet: what "go" of project "default", "go" of project "other" offers)',
    data: { absent: ['default/go', 'other/go'] },
  });
});

it('none is named where a name is near', () => {
  expect(refusal(of(undefined, 'a'), ['greet'])).toEqual({
    message: 'Unknown tool: gret. Did you mean greet?',
    data: { similar: ['greet'] },
  });
});
