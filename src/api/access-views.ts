import { z } from 'zod';
import { principalKinds } from '../identity/principal.ts';
import { actions, roles } from '../identity/roles.ts';
import { effects, itemKinds } from '../identity/rules.ts';

const time = z.iso.datetime();
const id = z.uuid();
const count = z.int().min(0);
const role = z.enum(roles);
const action = z.enum(Object.keys(actions) as (keyof typeof actions)[]);
const named = z.object({ id: z.string(), name: z.string() });
const project = named.nullable().describe('null: all projects');
const kind = z.enum(principalKinds);

const secret = z.object({
  id: z.string().describe('The public part of the key, which follows `sbk_`'),
  created_at: time,
  expires_at: time.nullable().describe('Set when it has been replaced'),
  last_used_at: time.nullable(),
});

export const keyView = z.object({
  id,
  name: z.string(),
  project: named.nullable().describe('Where it belongs; null: to all projects'),
  role: role.nullable().describe('Its role there'),
  expires_at: time.nullable().describe('null: never'),
  created_at: time,
  last_used_at: time.nullable().describe('Up to half a minute late'),
  secrets: z.array(secret).describe('Newest first; several while it is being rotated'),
});

export const issuedKey = keyView.extend({
  key: z.string().describe('The key, which is shown only here'),
});

export const keyList = z.object({ keys: z.array(keyView) });

export const groupView = z.object({
  id,
  name: z.string(),
  description: z.string().nullable(),
  created_at: time,
  members: z.array(z.object({ id, kind, name: z.string(), project: named.nullable() })),
});

export const groupList = z.object({ groups: z.array(groupView) });

export const roleTable = z.object({
  roles: z
    .array(z.object({ role, actions: z.array(action) }))
    .describe('From the least to the most powerful'),
  actions: z.array(
    z.object({ action, role: role.describe('The least that may do it'), meaning: z.string() }),
  ),
});

export const grantView = z.object({
  id,
  holder: z.object({ kind: z.enum(['principal', 'group']), id, name: z.string() }),
  project,
  role,
  created_at: time,
});

export const grantList = z.object({ grants: z.array(grantView) });

const subject = z.union([
  z.object({ kind: z.literal('everyone') }),
  z.object({ kind: z.literal('role'), role }),
  z.object({ kind: z.enum(['group', 'principal']), id, name: z.string() }),
]);

export const ruleView = z.object({
  id: z.string(),
  text: z.string().describe('As a person would say it'),
  effect: z.enum(effects),
  project,
  subject,
  kind: z.enum(itemKinds).nullable().describe('null: all kinds'),
  server: z.string().describe('A pattern'),
  name: z.string().describe('A pattern'),
  read_only: z.boolean().nullable(),
  destructive: z.boolean().nullable(),
  created_at: time,
});

export const ruleList = z.object({ rules: z.array(ruleView) });

export const limitView = z.object({
  id: z.string(),
  principal: named.nullable().describe('null: all'),
  project,
  server: z.string().nullable(),
  tool: z.string().nullable(),
  per_minute: z.int().min(1).nullable(),
  concurrent: z.int().min(1).nullable(),
  shared: z.boolean().describe('Whether all principals share one counter'),
  created_at: time,
});

export const limitList = z.object({ limits: z.array(limitView) });

export const canView = z.object({
  allowed: z.boolean(),
  action,
  role: role.nullable().describe('The role there; null: none'),
  rule: z.object({ id: z.string(), text: z.string() }).nullable().describe('The rule that decided'),
  reason: z.string(),
});

const outcome = z
  .enum(['done', 'denied', 'refused'])
  .describe('`denied`: by a role or a rule; `refused`: without a valid credential');

export const auditEntry = z.object({
  seq: z.int().min(1),
  at: time,
  actor: z.object({ kind: z.enum([...principalKinds, 'system']), id: z.string(), name: z.string() }),
  address: z.string().nullable(),
  action: z.string(),
  project: named.nullable(),
  subject: z.string().nullable(),
  outcome,
  rule: z.string().nullable().describe('The id of the rule that denied it'),
  count: z.int().min(1).describe('How often it happened'),
  before: z.unknown(),
  after: z.unknown(),
  previous: z.string().describe('The hash of the entry before, hexadecimal'),
  hash: z.string(),
});

export const auditPage = z.object({
  entries: z.array(auditEntry),
  next_cursor: z.string().nullable().describe('For the next page; null on the last page'),
});

export const auditCheck = z.object({
  entries: count,
  first_seq: z.int().nullable(),
  last_seq: z.int().nullable(),
  head: z
    .string()
    .describe('The hash of the newest entry: note it elsewhere, to prove later that nothing was changed'),
  problem: z.object({ seq: count, why: z.string() }).nullable().describe('The first one'),
});

export const whoamiView = z.object({
  kind,
  id: z.string(),
  name: z.string(),
  expires_at: time.nullable(),
  address: z.string().nullable(),
  authentication: z.boolean().describe('Whether every request needs a key'),
  roles: z.array(z.object({ project, role })),
  groups: z.array(named),
});

export type Named = z.infer<typeof named>;
export type KeyView = z.infer<typeof keyView>;
export type IssuedKey = z.infer<typeof issuedKey>;
export type GroupView = z.infer<typeof groupView>;
export type RoleTable = z.infer<typeof roleTable>;
export type GrantView = z.infer<typeof grantView>;
export type RuleView = z.infer<typeof ruleView>;
export type LimitView = z.infer<typeof limitView>;
export type CanView = z.infer<typeof canView>;
export type AuditEntry = z.infer<typeof auditEntry>;
export type AuditCheck = z.infer<typeof auditCheck>;
export type WhoamiView = z.infer<typeof whoamiView>;
