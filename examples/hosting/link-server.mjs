import { readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';

/** Links ./server to the program of the only installed package, whatever its name. */
const read = (path) => JSON.parse(readFileSync(path, 'utf8'));
const [name] = Object.keys(read('package.json').dependencies);
const folder = join('node_modules', name);
const { bin } = read(join(folder, 'package.json'));
const programs = typeof bin === 'string' ? [['', bin]] : Object.entries(bin ?? {});
const [, program] = programs.find(([word]) => word === name.split('/').at(-1)) ?? programs[0] ?? [];
if (program === undefined) {
  throw new Error(`The package "${name}" has no program: its package.json has no "bin".`);
}
symlinkSync(join(folder, program), 'server');
console.log(`server is ${join(folder, program)}`);
