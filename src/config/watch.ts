import { realpathSync, watch } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { asSwitchboardError, type SwitchboardError } from '../errors.ts';
import { configurationFrom, readText, type WarningListener } from './load.ts';
import type { Configuration } from './read.ts';

/** An editor makes several changes for one save. */
const settleMs = 50;
/** Used only where the system cannot watch folders. */
const pollMs = 1_000;

/**
 * Follows a configuration file: each time its contents have changed, tells the new configuration, or what is wrong with it.
 * Started before the first load, it misses no edit. It does not keep the process alive.
 */
export function watchConfiguration(
  path: string,
  onChange: (result: Configuration | SwitchboardError) => void,
  onWarning: WarningListener = () => {},
): { close(): void } {
  const file = resolve(path);
  let known = contentsOf(file);
  let closed = false;
  let settling: NodeJS.Timeout | undefined;

  const check = () => {
    const contents = contentsOf(file);
    if (contents.key === known.key) return;
    known = contents;
    onChange(attempt(() => configurationFrom(contents.read(), file, onWarning)));
  };
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
 * Folders and not the file, because editors write a new file and rename it over the old one. Events of other files count too:
 * a link on the way to the file may have moved. They only must not put off the check for as long as the folder is busy.
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

/** What a file has in it, or why that cannot be read; the key tells whether two of them are the same. */
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
