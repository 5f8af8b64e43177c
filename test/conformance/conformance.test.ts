import { describe, expect, test } from 'vitest';
import type { Era } from '../eras/peer.ts';
import { startSwitchboard } from '../helpers/switchboard.ts';
import { clientCommand } from './client-program.ts';
import { complaints, passedChecks } from './compare.ts';
import { fixturePaths, startFixture } from './processes.ts';
import { runClientScenario, runServerScenario } from './run.ts';

interface Sample {
  era: Era;
  revision: string;
  scenarios: string[];
}

/** A few scenarios for each revision; the long suite runs all of them. */
const samples: Sample[] = [
  {
    era: 'legacy',
    revision: '2025-11-25',
    scenarios: ['tools-call-sampling', 'dns-rebinding-protection'],
  },
  {
    era: 'modern',
    revision: '2026-07-28',
    scenarios: ['server-stateless', 'input-required-result-basic-elicitation', 'http-header-validation'],
  },
];

describe.each(samples)('conformance to $revision', ({ era, revision, scenarios }) => {
  test('of Switchboard as a server', async () => {
    await using fixture = await startFixture(era);
    await using switchboard = await startSwitchboard({ conformance: { url: fixture.url } });
    for (const scenario of scenarios) {
      const checks = await runServerScenario(switchboard.url, revision, scenario);
      expect(complaints(checks)).toEqual([]);
      expect(passedChecks(checks).length).toBeGreaterThan(0);
    }
  });

  test('of Switchboard as a client', async () => {
    const checks = await runClientScenario('tools_call', revision, clientCommand(era));
    expect(complaints(checks)).toEqual([]);
    expect(passedChecks(checks).length).toBeGreaterThan(0);
  });
});

const transports = ['HTTP', 'stdio'] as const;

test.each(transports)('of Switchboard in front of a server of both eras over %s', async (transport) => {
  await using fixture = await startFixture('both');
  const config =
    transport === 'HTTP' ? { url: fixture.url } : { command: process.execPath, args: [fixturePaths.both] };
  await using switchboard = await startSwitchboard({ conformance: config });
  for (const [revision, scenario] of [
    ['2025-11-25', 'tools-call-sampling'],
    ['2026-07-28', 'input-required-result-basic-elicitation'],
  ] as const) {
    const checks = await runServerScenario(switchboard.url, revision, scenario);
    expect(complaints(checks)).toEqual([]);
    expect(passedChecks(checks).length).toBeGreaterThan(0);
  }
});
