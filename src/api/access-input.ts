import { z } from 'zod';
import { fields, flag, integer, oneOf, text } from '../config/fields.ts';
import { actions, roles } from '../identity/roles.ts';
import { effects, itemKinds } from '../identity/rules.ts';
import { accessName } from './access-names.ts';
import { description } from './server-input.ts';
import { moment, pageLimit } from './times.ts';

const MAX_STARS = 10;
const MAX_OVERLAP_MS = 366 * 24 * 60 * 60 * 1_000;
const MAX_LIMIT = 1_000_000_000;

/** Paths accept an id, a name, or project/name. */
const name = accessName;
const reference = text(256, 1);
const role = oneOf(roles);
const project = text(128, 1)
  .nullable()
  .optional()
  .describe('The id or name of a project; null or nothing: all projects');

const expiry = moment
  .refine((time) => Date.parse(time) > Date.now(), 'must be in the future')
  .nullable()
  .optional()
  .describe('null: never');

const pattern = text(500, 1)
  .refine((value) => value.split('*').length <= MAX_STARS + 1, `must not have more than ${MAX_STARS} stars`)
  .meta({ pattern: `^[^*\\u0000]*(\\*[^*\\u0000]*){0,${MAX_STARS}}$` });

export const newKey = fields({ name, project, role, expires_at: expiry });

export const keyChanges = fields({ name: name.optional(), expires_at: expiry });

export const keyRotation = fields({
  overlap_ms: integer(0, MAX_OVERLAP_MS)
    .default(0)
    .describe('For how long the present secret remains valid; 0: it ends at once'),
  expires_at: expiry,
});

export const newGroup = fields({ name, description: description.optional() });

const principal = reference.describe('A key: its id, its name if that is unique, or project/name');
const group = reference.describe("A group's id or name");

export const newGrant = fields({
  principal: principal.optional(),
  group: group.optional(),
  project,
  role,
}).superRefine((grant, context) => {
  if ((grant.principal === undefined) !== (grant.group === undefined)) return;
  const message =
    grant.group === undefined ? 'is missing, and so is group' : 'must not be there together with group';
  context.addIssue({ code: 'custom', path: ['principal'], message });
});

const subject = z
  .union([z.literal('everyone'), fields({ role }), fields({ group }), fields({ principal })], {
    error: 'must be "everyone", or an object with one of role, group and principal',
  })
  .default('everyone')
  .describe('For whom it is: "everyone", or those who have exactly this role, a group, or a principal');

const tristate = flag.nullable().optional();

export const newRule = fields({
  effect: oneOf(effects),
  project,
  subject,
  kind: oneOf(itemKinds).nullable().optional().describe('null: all kinds'),
  server: pattern.default('*').describe('A pattern of server names, in which `*` matches any text'),
  name: pattern.default('*').describe("A pattern of the servers' own names, or of URIs"),
  read_only: tristate.describe('Only tools that are annotated as read-only, or only the others'),
  destructive: tristate.describe(
    'Only tools that are annotated as destructive, or not annotated; or only the others',
  ),
});

export const newLimit = fields({
  principal: principal.nullable().optional().describe('null: all'),
  project,
  server: pattern.nullable().optional(),
  tool: pattern.nullable().optional(),
  per_minute: integer(1, MAX_LIMIT).nullable().optional(),
  concurrent: integer(1, MAX_LIMIT).nullable().optional().describe('How many calls at a time'),
  shared: flag.default(false).describe('Whether all principals share one counter'),
}).superRefine(({ per_minute = null, concurrent = null }, context) => {
  if (per_minute !== null || concurrent !== null) return;
  context.addIssue({ code: 'custom', path: ['per_minute'], message: 'is missing, and so is concurrent' });
});

/** Query values are strings. */
export const placeQuery = fields({ project: text(128, 1).optional().describe('A project id or name') });

export const canQuery = fields({
  principal: principal.optional().describe('Whom it is about: the sender, unless another is named'),
  action: oneOf(Object.keys(actions) as (keyof typeof actions)[]).default('call'),
  project: text(128, 1).optional().describe('A project id or name; without one, all projects'),
  kind: oneOf(itemKinds).default('tool'),
  name: text(16 * 1024, 1)
    .optional()
    .describe('A name as clients see it, a URI or a URI template; with `server`, as the server gives it'),
  server: text(256, 1).optional(),
});

export const auditQuery = fields({
  project: text(128, 1).optional().describe('A project id or name'),
  principal: reference.optional().describe('Who did it'),
  action: text(64, 1).optional().describe('Such as `key.create`, or its noun: `key`'),
  outcome: oneOf(['done', 'denied', 'refused']).optional(),
  since: moment.optional(),
  until: moment.optional(),
  limit: pageLimit(500, 50),
  cursor: text(1_024, 1).optional(),
  format: oneOf(['json', 'jsonl'])
    .default('json')
    .describe('`jsonl`: all entries, oldest first, one per line; the same as Accept: application/jsonl'),
});
