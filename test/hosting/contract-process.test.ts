import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { ProcessRecord } from '../../src/channels/process-record.ts';
import { groupRuns } from '../../src/channels/process-table.ts';
import { ProcessDriver } from '../../src/hosting/drivers/process/driver.ts';
import { fixtureServer } from '../helpers/switchboard.ts';
import { type DriverUnderTest, driverContract, specOf } from './contract.ts';

driverContract('process', makeProcessDriver, { hasSurvivors: false, hasVolumes: true });

async function makeProcessDriver(): Promise<DriverUnderTest> {
  const home = await mkdtemp(join(tmpdir(), 'switchboard-test-'));
  const records = join(home, 'processes');
  const record = ProcessRecord.open(records, (warning) => expect.unreachable(warning));
  const groups: number[] = [];
  const children = {
    environment: record.environment,
    inheritsNetwork: true,
    turn: () => record.turn(),
    started(pid: number) {
      groups.push(pid);
      record.started(pid);
    },
    ended: (pid: number) => record.ended(pid),
  };
  return {
    driver: new ProcessDriver({ home, children }),
    again: () => new ProcessDriver({ home, children }),
    spec(fixture, more = {}) {
      const { command, args } = fixtureServer(fixture);
      return specOf({ command, ...more, args: [...args, ...(more.args ?? [])] });
    },
    running: async () => groups.filter(groupRuns).map(String),
    async [Symbol.asyncDispose]() {
      record.close();
      // The record is removed with the last process.
      expect(await readdir(records)).toEqual([]);
      await rm(home, { recursive: true });
    },
  };
}
