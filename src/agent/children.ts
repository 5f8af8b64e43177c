import { join } from 'node:path';
import { endLeftovers, ProcessRecord } from '../channels/process-record.ts';
import { home } from '../home.ts';

/** By default these end a process without an `exit` event. */
const deadly: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];

interface SharedRecord {
  record: ProcessRecord;
  users: number;
  leave(): void;
}

/** One for the process, shared by all toolboxes. */
let shared: SharedRecord | undefined;

/** The record of this process's children, so that none outlives the process, however it ends. */
export async function shareChildren(
  warned: (message: string) => void,
): Promise<{ record: ProcessRecord; release(): void }> {
  const folder = join(home(), 'run');
  await endLeftovers(folder, warned);
  shared ??= openRecord(folder, warned);
  const mine = shared;
  mine.users++;
  return {
    record: mine.record,
    release() {
      if (--mine.users > 0) return;
      if (shared === mine) shared = undefined;
      mine.leave();
    },
  };
}

function openRecord(folder: string, warned: (message: string) => void): SharedRecord {
  const record = ProcessRecord.open(folder, warned);
  const exits = () => record.killAll();
  const dies = (signal: NodeJS.Signals) => {
    // Another listener decides what happens.
    if (process.listenerCount(signal) > 1) return;
    record.killAll();
    process.off(signal, dies);
    process.kill(process.pid, signal);
  };
  process.on('exit', exits);
  for (const signal of deadly) process.on(signal, dies);
  return {
    record,
    users: 0,
    leave() {
      process.off('exit', exits);
      for (const signal of deadly) process.off(signal, dies);
      record.close();
    },
  };
}
