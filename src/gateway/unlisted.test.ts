import { expect, it } from 'vitest';
import { readMessage } from '../protocol/message-reader.ts';
import { Qualifiers } from './contributions.ts';
import { Unlisted } from './unlisted.ts';

/** Explains an unknown tool if these servers never connected. */
function explain(absent: Record<string, string[]>, similar: string[] = []) {
  const projects = Object.entries(absent).map(([name, servers]) => ({
    name,
    isDefault: true,
    isSwitchedOff: () => false,
    disabledServers: () => [],
    servers: {
      all: () => servers.map((server) => ({ name: server, config: {}, condition: {} })),
      groups: () => [],
    },
  }));
  const unlisted = new Unlisted(projects as never, new Qualifiers(false, '__'), { similar: () => similar });
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'gret' } };
  const { message, data } = unlisted.explain(readMessage(Buffer.from(JSON.stringify(call))));
  return { message, data };
}

it('names a few of the servers whose tools are unknown', () => {
  expect(explain({ default: ['a', 'b', 'c'] }).message).toBe(
    'Unknown tool: gret (not known yet: what "a", "b", "c" offers)',
  );
  expect(explain({ default: ['a', 'b', 'c', 'd', 'e'] })).toEqual({
    message: 'Unknown tool: gret (not known yet: what "a", "b", "c" and 2 more offer)',
    data: { absent: ['a', 'b', 'c'] },
  });
});

it('names the project of servers with the same name', () => {
  expect(explain({ default: ['go'], other: ['go'] })).toEqual({
    message:
      'Unknown tool: gret (not known yet: what "go" of project "default", "go" of project "other" offers)',
    data: { absent: ['default/go', 'other/go'] },
  });
});

it('names no server if a similar tool exists', () => {
  expect(explain({ default: ['a'] }, ['greet'])).toEqual({
    message: 'Unknown tool: gret. Did you mean greet?',
    data: { similar: ['greet'] },
  });
});
