import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** A request that was made, and how it was answered. */
export interface Exchange {
  method: string;
  /** With its query, as it was sent. */
  path: string;
  status: number;
  text: string;
}

interface Outcome {
  code: number;
  /** What it says about it all, with requests to make by hand where something failed. */
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

/** What has to be true of an answer, whatever was asked. */
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

/** Tries an API by its OpenAPI document, as schemathesis.toml says. What it leaves behind goes into the folder. */
export async function runSchemathesis(program: string, document: string, folder: string): Promise<Outcome> {
  const archive = join(folder, 'exchanges.har');
  const words = [
    ...['--config-file', join(import.meta.dirname, 'schemathesis.toml'), 'run', document],
    ...['--checks', checks.join(','), '--no-color'],
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
