import { expect, it } from 'vitest';
import { AccessControl } from '../identity/access-control.ts';
import { Permissions } from '../identity/permissions.ts';
import { Principal } from '../identity/principal.ts';
import type { Rule } from '../identity/rules.ts';
import { readMessage } from '../protocol/message-reader.ts';
import type { Group } from '../upstreams/group.ts';
import { authorize } from './authorize.ts';
import type { Incoming } from './caller.ts';
import type { Scope } from './scope.ts';

const group = {
  name: 'files',
  members: [{ name: 'files' }],
  project: { id: 'p', name: 'p' },
} as unknown as Group;
const scope = { explainUnknown: () => new Error('unknown') } as unknown as Scope;
const own = 'file:///pub/{path}';
const route = {
  group: 'files',
  qualifier: 'files',
  own,
  server: undefined,
  among: undefined,
  isRepeatable: true,
};

const secrets: Rule = {
  ...{
    id: 'r1',
    effect: 'deny',
    project: undefined,
    subject: { kind: 'everyone' },
    kind: undefined,
    server: '*',
  },
  ...{ name: 'file:///secret/*', readOnly: undefined, destructive: undefined },
};
const permissions = new Permissions({ everywhere: 'caller', byProject: new Map() }, [secrets]);
const principal = new Principal('key', 'a', 'a', permissions);

/** The completion of a template beside a denied folder. The server's name has a character that is escaped in URIs. */
function complete(rest: string): void {
  const params = `{"ref":{"type":"ref/resource","uri":"resource://a%2Fb/${own}"},${rest}}`;
  const text = `{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":${params}}`;
  const incoming = { caller: { principal }, address: undefined, message: readMessage(Buffer.from(text)) };
  const target = { route, kind: 'templates', edits: [] } as const;
  const services = { access: new AccessControl(() => {}) };
  authorize(scope, incoming as unknown as Incoming, { ...target, edits: [] }, group, services);
}

it.each([
  '"argument":{"name":"path","value":""}',
  '"argument":{"name":"path","value":"a/b.c"},"context":{"arguments":{"other":"x"}}',
])('a completion within its folder is let through: %s', (rest) => {
  expect(() => complete(rest)).not.toThrow();
});

it.each([
  '"argument":{"name":"path","value":"../secret/"}',
  '"argument":{"name":"path","value":"\\u002e./secret/"}',
  '"argument":{"name":"path","value":"/secret/"}',
  '"argument":{"name":"path","value":"%2e%2e/secret/"}',
  '"argument":{"name":"path","value":"a"},"context":{"arguments":{"other":".."}}',
  // Servers differ in which of these they read.
  '"argument":{"name":"path","value":"../secret/"},"argument":{"name":"path","value":"a"}',
  '"argument":{"name":"path","value":"a"},"Argument":{"name":"path","value":"../secret/"}',
])('a completion that may lead out of its folder is denied: %s', (rest) => {
  expect(() => complete(rest)).toThrow('unknown');
});
