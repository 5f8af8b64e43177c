import { describe, expect, it } from 'vitest';
import { readMessage } from '../../protocol/message-reader.ts';
import { checkHeaders } from './header-checks.ts';

const version = '2026-07-28';
const always = { 'mcp-protocol-version': version, 'mcp-method': 'tools/call' };

function check(name: string, headers: Record<string, string | undefined>): void {
  const params = { name };
  const request = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
  checkHeaders({ ...always, ...headers }, version, readMessage(Buffer.from(JSON.stringify(request))));
}

describe('the headers of a request', () => {
  it.each([
    ['echo', 'echo'],
    ['echo', ' echo '],
    ['echo', '=?base64?ZWNobw==?='],
    ['ä', '=?base64?w6Q=?='],
    ['=?base64?YQ==?=', '=?base64?PT9iYXNlNjQ/WVE9PT89?='],
  ])('match its body for %j: %j', (name, header) => {
    expect(() => check(name, { 'mcp-name': header })).not.toThrow();
  });

  it.each([
    ['is missing', 'echo', undefined],
    ['differs', 'echo', 'Echo'],
    ['contains more', 'echo', 'echo, echo'],
    ['is not base64', 'echo', '=?base64?!?='],
    ['decodes to another value', '=?base64?YQ==?=', '=?base64?YQ==?='],
  ])('are rejected if one %s', (_how, name, header) => {
    expect(() => check(name, { 'mcp-name': header })).toThrow('Headers and message disagree');
  });

  it.each(['mcp-protocol-version', 'mcp-method'])('are rejected without %s', (header) => {
    expect(() => check('echo', { 'mcp-name': 'echo', [header]: undefined })).toThrow(`${header} is missing`);
  });
});
