#!/usr/bin/env node
// Only syntax that old versions of Node can parse, or their users see a syntax error instead of the reason.
const needed = 24;
const current = process.versions.node;

if (Number(current.split('.')[0]) < needed) {
  console.error(
    `switchboard needs Node.js ${needed} or newer, and this is ${current}: see https://nodejs.org`,
  );
  process.exitCode = 1;
} else {
  import('../dist/main.js');
}
