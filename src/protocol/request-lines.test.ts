import { describe, expect, it } from 'vitest';
import { nameKeyOf, requestLines } from './request-lines.ts';

const always = 'mcp-protocol-version: 2026-07-28\r\n';

describe('the head of a request', () => {
  it.each([
    ['tools/call', 'name'],
    ['prompts/get', 'name'],
    ['resources/read', 'uri'],
    ['tasks/get', 'taskId'],
    ['tasks/update', 'taskId'],
    ['tasks/cancel', 'taskId'],
  ])('of %s repeats the name in its params', (method, key) => {
    expect(nameKeyOf(method)).toBe(key);
    expect(requestLines(method, 'it')).toBe(`${always}mcp-method: ${method}\r\nmcp-name: it\r\n`);
    expect(requestLines(method, undefined)).toBe(`${always}mcp-method: ${method}\r\n`);
  });

  it.each(['tools/list', 'completion/complete', 'server/discover', 'toString', '__proto__'])(
    'of %s names nothing',
    (method) => {
      expect(nameKeyOf(method)).toBeUndefined();
      expect(requestLines(method, 'it')).toBe(`${always}mcp-method: ${method}\r\n`);
    },
  );

  it('never contains an injected line', () => {
    for (const evil of ['a\r\nx-evil: 1', 'a\nb', '\r\n\r\n']) {
      expect(requestLines('tools/call', evil).split('\r\n')).toHaveLength(4);
      expect(requestLines(evil, undefined).split('\r\n')).toHaveLength(3);
    }
  });
});
