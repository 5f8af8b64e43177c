import { beforeAll, describe, expect, test } from 'vitest';
import { startSwitchboard } from '../helpers/switchboard.ts';
import { complaints, lostChecks, passedChecks } from './compare.ts';
import { fixturePaths, startFixture } from './processes.ts';
import { type Check, runConformance } from './run.ts';

const revision = '2026-07-28';

/** All that can succeed: 118 of the scored scenarios, and 62 of those for extensions and pending ones. */
const checksOfTheSuite = 180;

describe(`conformance to ${revision}`, () => {
  let direct: Check[];

  beforeAll(async () => {
    await using fixture = await startFixture('modern');
    direct = await runConformance(fixture.url, revision);
  });

  test('the modern fixture passes every check directly', () => {
    expect(complaints(direct)).toEqual([]);
    expect(passedChecks(direct).length).toBeGreaterThanOrEqual(checksOfTheSuite);
  });

  test('no check is lost through Switchboard to a modern server over streamable HTTP', async () => {
    await using fixture = await startFixture('modern');
    await using switchboard = await startSwitchboard({ conformance: { url: fixture.url } });
    const through = await runConformance(switchboard.url, revision);
    expect(lostChecks(direct, through)).toEqual([]);
  });

  test('no check is lost through Switchboard to a modern server over stdio', async () => {
    const server = { command: process.execPath, args: [fixturePaths.modern] };
    await using switchboard = await startSwitchboard({ conformance: server });
    const through = await runConformance(switchboard.url, revision);
    expect(lostChecks(direct, through)).toEqual([]);
  });
});
