import { beforeAll, describe, expect, test } from 'vitest';
import { startSwitchboard } from '../helpers/switchboard.ts';
import { complaints, type Exception, lostChecks, passedChecks } from './compare.ts';
import { fixturePaths, startFixture } from './processes.ts';
import { type Check, runConformance } from './run.ts';

interface Revision {
  revision: string;
  /** As many as a server of that era alone passes. */
  passed: number;
  overStdio: Exception[];
}

const revisions: Revision[] = [
  {
    revision: '2025-11-25',
    passed: 84,
    overStdio: [
      {
        scenario: 'server-sse-polling',
        id: 'server-sse-disconnect-resume',
        status: 'INFO',
        why: 'a server on stdio has no stream that it could close in the middle of a call',
      },
    ],
  },
  { revision: '2026-07-28', passed: 180, overStdio: [] },
];

describe.each(revisions)('conformance to $revision of a server that speaks both eras', (held) => {
  const { revision, passed, overStdio } = held;
  let direct: Check[];

  beforeAll(async () => {
    await using fixture = await startFixture('both');
    direct = await runConformance(fixture.url, revision);
  });

  test('the fixture passes every check directly', () => {
    expect(complaints(direct)).toEqual([]);
    expect(passedChecks(direct).length).toBeGreaterThanOrEqual(passed);
  });

  test('no check is lost through Switchboard over streamable HTTP', async () => {
    await using fixture = await startFixture('both');
    await using switchboard = await startSwitchboard({ conformance: { url: fixture.url } });
    expect(lostChecks(direct, await runConformance(switchboard.url, revision))).toEqual([]);
  });

  test('no check is lost through Switchboard over stdio', async () => {
    const server = { command: process.execPath, args: [fixturePaths.both] };
    await using switchboard = await startSwitchboard({ conformance: server });
    expect(lostChecks(direct, await runConformance(switchboard.url, revision), overStdio)).toEqual([]);
  });
});
