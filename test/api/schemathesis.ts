import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, type TestContext } from 'vitest';
import { requirePart } from '../helpers/parts.ts';
import { checkAnswer, type Exchange } from './answers.ts';
import { openScene } from './scene.ts';

interface Outcome {
  code: number;
  /** Its report, with a command to repeat each failure. */
  said: string;
  exchanges: Exchange[];
}

interface Archive {
  log: {
    entries: {
      request: { method: string; url: string };
      response: { status: number; content: { text?: string } };
    }[];
  };
}

/** The checks for every response. */
const checks = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_headers_conformance',
  'response_schema_conformance',
  'negative_data_rejection',
  'unsupported_method',
  'allow_header_conformance',
  'use_after_free',
];

/** How much to try; schemathesis.toml configures everything. */
interface Extent {
  flags: string[];
  exchanges: number;
  operations: number;
}

/** Checks the real program against its document, with at least this many exchanges and successful operations. */
export async function trySchemathesis(test: TestContext, { flags, ...least }: Extent): Promise<void> {
  const { command } = requirePart('schemathesis', test);
  await using scene = await openScene();
  const { code, said, exchanges } = await run(command, `${scene.url}/openapi.json`, scene.folder, flags);
  expect(code, said).toBe(0);
  exchanges.forEach(checkAnswer);
  expect(exchanges.length).toBeGreaterThan(least.exchanges);
  // Generated requests prove little unless some succeed.
  const done = new Set(exchanges.filter(({ status }) => status < 300).map(kindOf));
  expect(done.size, [...done].join('\n')).toBeGreaterThan(least.operations);
  await scene.checkHealth();
}

/** Tests an API by its OpenAPI document. Reports are written to the folder. */
async function run(program: string, document: string, folder: string, flags: string[]): Promise<Outcome> {
  const archive = join(folder, 'exchanges.har');
  const words = [
    ...['--config-file', join(import.meta.dirname, 'schemathesis.toml'), 'run', document],
    ...['--checks', checks.join(','), '--no-color'],
    ...flags,
    ...['--report', 'har', '--report-har-path', archive, '--output-sanitize', 'false'],
  ];
  const { code, said } = await new Promise<Omit<Outcome, 'exchanges'>>((resolve) => {
    execFile(program, words, { cwd: folder, maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), said: stdout + stderr }),
    );
  });
  const { log } = JSON.parse(await readFile(archive, 'utf8')) as Archive;
  const exchanges = log.entries.map(({ request, response }) => ({
    method: request.method,
    path: request.url.replace(/^.*?\/api\/v1/, ''),
    status: response.status,
    text: response.content.text ?? '',
  }));
  return { code, said, exchanges };
}

/** The operation of a request, with * for every name. */
function kindOf({ method, path }: Exchange): string {
  const steps = path.split('?')[0]!.split('/');
  return `${method} ${steps.map((step, index) => (index % 2 === 0 && index > 0 ? '*' : step)).join('/')}`;
}
