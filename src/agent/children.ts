import { join } from 'node:path';
import { endLeftovers, ProcessRecord } from '../channels/process-record.ts';
import { home } from '../home.ts';

/** These end a process that does not listen for them, and no `exit` event tells of it. */
const deadly: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];

interface SharedRecord {
  record: ProcessRecord;
  users: number;
  leave(): void;
}

/** A process ends only once, and has one record of its children, however many toolboxes there are in it. */
let shared: SharedRecord | undefined;

/** The record of this process's children. None of them outlives the process, whichever way that ends. */
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
    // Whoever else listens decides what happens.
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
