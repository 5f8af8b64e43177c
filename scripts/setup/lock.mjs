import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

const pollMs = 250;

/** Runs the work while no other process on this machine does. The lock is a folder with its owner's pid. */
export async function withLock(lock, work) {
  await acquire(lock);
  try {
    return await work();
  } finally {
    rmSync(lock, { recursive: true, force: true });
  }
}

async function acquire(lock) {
  mkdirSync(dirname(lock), { recursive: true });
  let announced;
  while (!tryToTake(lock)) {
    const owner = ownerOf(lock);
    if (owner === undefined) continue;
    if (!isAlive(owner)) {
      removeStale(lock, owner);
      continue;
    }
    if (announced !== owner) {
      console.log(`setup: waiting for another set-up (process ${owner}, lock ${lock})`);
      announced = owner;
    }
    await wait(pollMs);
  }
}

/** Writes the pid before the folder gets its name, so that a lock always has an owner. */
function tryToTake(lock) {
  const candidate = mkdtempSync(`${lock}-`);
  writeFileSync(join(candidate, 'pid'), String(process.pid));
  try {
    renameSync(candidate, lock);
    return true;
  } catch (error) {
    rmSync(candidate, { recursive: true, force: true });
    if (['ENOTEMPTY', 'EEXIST', 'EPERM'].includes(error.code)) return false;
    throw error;
  }
}

function ownerOf(lock) {
  try {
    return Number(readFileSync(join(lock, 'pid'), 'utf8'));
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/** Moves the lock before it is deleted, so that of two processes that find it stale, only one deletes it. */
function removeStale(lock, owner) {
  const aside = `${lock}-stale-${process.pid}`;
  try {
    renameSync(lock, aside);
  } catch (error) {
    if (error.code === 'ENOENT') return;
    throw error;
  }
  if (ownerOf(aside) === owner) rmSync(aside, { recursive: true, force: true });
  else renameSync(aside, lock);
}
