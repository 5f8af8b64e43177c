import { realpathSync, watch } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { asSwitchboardError, type SwitchboardError } from '../errors.ts';
import { configurationFrom, readText, type WarningListener } from './load.ts';
import type { Configuration } from './read.ts';

/** Editors make several changes per save. */
const settleMs = 50;
/** If the system cannot watch folders. */
const pollMs = 1_000;

/**
 * Calls `onChange` with the new configuration or its error whenever the contents change. Start it before the first load to
 * miss no edit. It does not keep the process alive.
 */
export function watchConfiguration(
  path: string,
  onChange: (result: Configuration | SwitchboardError) => void,
  onWarning: WarningListener = () => {},
): { close(): void } {
  const file = resolve(path);
  let known = contentsOf(file);
  return watchFile(file, () => {
    const contents = contentsOf(file);
    if (contents.key === known.key) return;
    known = contents;
    onChange(attempt(() => configurationFrom(contents.read(), file, onWarning)));
  });
}

/** Calls `check` when the file may have changed. It does not keep the process alive. */
export function watchFile(file: string, check: () => void): { close(): void } {
  let closed = false;
  let settling: NodeJS.Timeout | undefined;
  const schedule = (startAgain: boolean) => {
    if (closed || (settling !== undefined && !startAgain)) return;
    clearTimeout(settling);
    settling = setTimeout(() => {
      settling = undefined;
      check();
    }, settleMs);
    settling.unref();
  };
  const stopWatching = followFolders(file, schedule);

  return {
    close() {
      closed = true;
      clearTimeout(settling);
      stopWatching();
    },
  };
}

/**
 * Watches folders, because editors rename a new file over the old one. Events of other files also trigger a check, since a
 * link in the path may have changed, but they do not restart the timer: a busy folder would delay the check indefinitely.
 */
function followFolders(file: string, schedule: (startAgain: boolean) => void): () => void {
  const names = new Set([basename(file)]);
  const folders = new Set([dirname(file)]);
  const target = realPath(file);
  if (target !== undefined) {
    names.add(basename(target));
    folders.add(dirname(target));
  }
  const stops = [...folders].map((folder) => {
    let stop = () => {};
    const pollInstead = () => {
      const timer = setInterval(() => schedule(false), pollMs);
      timer.unref();
      stop = () => clearInterval(timer);
    };
    try {
      const watcher = watch(folder, { persistent: false });
      watcher.on('change', (_event, name) => schedule(names.has(String(name))));
      watcher.on('error', () => {
        watcher.close();
        pollInstead();
      });
      stop = () => watcher.close();
    } catch {
      pollInstead();
    }
    return () => stop();
  });
  return () => {
    for (const stop of stops) stop();
  };
}

/** The key identifies the contents or the error. */
function contentsOf(file: string): { key: string; read(): string } {
  try {
    const text = readText(file);
    return { key: `text ${text}`, read: () => text };
  } catch (error) {
    const failure = asSwitchboardError(error);
    return {
      key: `failure ${failure.message}`,
      read() {
        throw failure;
      },
    };
  }
}

function realPath(file: string): string | undefined {
  try {
    return realpathSync(file);
  } catch {
    return undefined;
  }
}

function attempt(read: () => Configuration): Configuration | SwitchboardError {
  try {
    return read();
  } catch (error) {
    return asSwitchboardError(error);
  }
}
