import { beforeAll, describe, expect, test } from 'vitest';
import { startSwitchboard } from '../helpers/switchboard.ts';
import { complaints, type Exception, lostChecks, passedChecks } from './compare.ts';
import { fixturePaths, startFixture } from './processes.ts';
import { type Check, runConformance } from './run.ts';

interface Revision {
  revision: string;
  passed: number;
  overStdio: Exception[];
}

const legacy: Revision = {
  revision: '2025-11-25',
  // As many as the reference server of the conformance suite passes.
  passed: 84,
  overStdio: [
    {
      scenario: 'server-sse-polling',
      id: 'server-sse-disconnect-resume',
      status: 'INFO',
      why: 'a server on stdio has no stream that it could close in the middle of a call',
    },
  ],
};

// All that can pass: 118 of the scored scenarios, and 62 of those for extensions and pending ones.
const modern: Revision = { revision: '2026-07-28', passed: 180, overStdio: [] };

describe.each([
  { era: 'legacy', ...legacy },
  { era: 'modern', ...modern },
  { era: 'both', ...legacy },
  { era: 'both', ...modern },
] as const)('conformance to $revision (server era: $era)', ({ era, revision, passed, overStdio }) => {
  let direct: Check[];

  beforeAll(async () => {
    await using fixture = await startFixture(era);
    direct = await runConformance(fixture.url, revision);
  });

  test('the fixture passes every check directly', () => {
    expect(complaints(direct)).toEqual([]);
    expect(passedChecks(direct).length).toBeGreaterThanOrEqual(passed);
  });

  test('no check is lost through Switchboard over streamable HTTP', async () => {
    await using fixture = await startFixture(era);
    await using switchboard = await startSwitchboard({ conformance: { url: fixture.url } });
    expect(lostChecks(direct, await runConformance(switchboard.url, revision))).toEqual([]);
  });

  test('no check is lost through Switchboard over stdio', async () => {
    const server = { command: process.execPath, args: [fixturePaths[era]] };
    await using switchboard = await startSwitchboard({ conformance: server });
    expect(lostChecks(direct, await runConformance(switchboard.url, revision), overStdio)).toEqual([]);
  });
});
