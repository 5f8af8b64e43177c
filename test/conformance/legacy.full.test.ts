import { beforeAll, describe, expect, test } from 'vitest';
import { startSwitchboard } from '../helpers/switchboard.ts';
import { complaints, type Exception, lostChecks, passedChecks } from './compare.ts';
import { fixturePaths, startFixture } from './processes.ts';
import { type Check, runConformance } from './run.ts';

const revision = '2025-11-25';

/** As many as the reference server of the conformance suite passes. */
const checksOfTheSuite = 84;

const overStdio: Exception[] = [
  {
    scenario: 'server-sse-polling',
    id: 'server-sse-disconnect-resume',
    status: 'INFO',
    why: 'a server on stdio has no stream that it could close in the middle of a call',
  },
];

describe(`conformance to ${revision}`, () => {
  let direct: Check[];

  beforeAll(async () => {
    await using fixture = await startFixture('legacy');
    direct = await runConformance(fixture.url, revision);
  });

  test('the fixture passes every check directly', () => {
    expect(complaints(direct)).toEqual([]);
    expect(passedChecks(direct).length).toBeGreaterThanOrEqual(checksOfTheSuite);
  });

  test('no check is lost through Switchboard to a server over streamable HTTP', async () => {
    await using fixture = await startFixture('legacy');
    await using switchboard = await startSwitchboard({ conformance: { url: fixture.url } });
    const through = await runConformance(switchboard.url, revision);
    expect(lostChecks(direct, through)).toEqual([]);
  });

  test('no check is lost through Switchboard to a server over stdio', async () => {
    const server = { command: process.execPath, args: [fixturePaths.legacy] };
    await using switchboard = await startSwitchboard({ conformance: server });
    const through = await runConformance(switchboard.url, revision);
    expect(lostChecks(direct, through, overStdio)).toEqual([]);
  });
});
