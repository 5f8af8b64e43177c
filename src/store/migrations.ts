import { createHash } from 'node:crypto';
import { sql as projects } from './migrations/0001-projects.ts';
import { sql as offers } from './migrations/0002-offers.ts';

import { sql as sessions } from './migrations/0003-sessions.ts';

import { sql as agentRuns } from './migrations/0004-agent-runs.ts';

import { sql as transport } from './migrations/0005-transport.ts';

import { sql as names } from './migrations/0006-names.ts';

import { sql as formerNames } from './migrations/0007-former-names.ts';

export interface Migration {
  number: number;
  name: string;
  sql: string;
  checksum: string;
}

/** In the order in which they are applied. What was released is never changed: a later one mends it. */
export const migrations: readonly Migration[] = [
  ['projects', projects] as const,
  ['offers', offers] as const,
  ['sessions', sessions] as const,
  ['agent-runs', agentRuns] as const,
  ['transport', transport] as const,
  ['names', names] as const,
  ['former-names', formerNames] as const,
].map(([name, sql], index) => ({
  number: index + 1,
  name,
  sql,
  checksum: createHash('sha256').update(sql).digest('hex'),
}));
