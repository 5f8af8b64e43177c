import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished } from 'vitest';
import { type Finished, runCli, temporaryFolder } from '../helpers/cli.ts';
import { mainProgram } from '../helpers/programs.ts';
import { fixtureServer, type RunningSwitchboard, startSwitchboard } from '../helpers/switchboard.ts';

export const box = fixtureServer('toolbox');

export async function start(mcpServers: object = { box }) {
  const switchboard = await startSwitchboard(mcpServers, {}, { database: 'shared' });
  onTestFinished(() => switchboard.stop());
  /** Options must precede the words after --. */
  const cli = (...words: string[]): Promise<Finished> => runCli(addressed(switchboard, words));
  const done = async (...words: string[]): Promise<string> => {
    const { code, stdout, stderr } = await cli(...words);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return stdout;
  };
  return {
    switchboard,
    cli,
    done,
    json: async (...words: string[]): Promise<unknown> => JSON.parse(await done(...words, '--json')),
    names: async (...words: string[]): Promise<string[]> => {
      const list = JSON.parse(await done(...words, '--json')) as { name: string }[];
      return list.map(({ name }) => name);
    },
    /** Adds a fixture server, whose command follows --. */
    addBox: (name: string, ...options: string[]) =>
      cli('server', 'add', name, ...options, '--', box.command, ...box.args),
    pipe: (input: string, ...words: string[]) => pipeInto(addressed(switchboard, words), input),
  };
}

export function addressed({ baseUrl }: RunningSwitchboard, words: string[]): string[] {
  const behind = words.indexOf('--');
  return words.toSpliced(behind === -1 ? words.length : behind, 0, '--url', baseUrl);
}

async function pipeInto(words: string[], input: string): Promise<Finished> {
  const child = spawn(process.execPath, [mainProgram, ...words], { stdio: 'pipe' });
  child.stdin.end(input);
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number | null]>,
  ]);
  return { code, stdout, stderr };
}

export async function fileWith(contents: unknown): Promise<string> {
  const folder = await temporaryFolder();
  onTestFinished(() => folder[Symbol.asyncDispose]());
  const path = join(folder.path, 'file.json');
  await writeFile(path, typeof contents === 'string' ? contents : JSON.stringify(contents));
  return path;
}
