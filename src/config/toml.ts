import { parse, TomlError } from 'smol-toml';
import { invalidConfiguration } from './problems.ts';

export function readToml(text: string, file: string): Record<string, unknown> {
  try {
    return parse(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const [reason = ''] = error.message.split('\n');
    const message = `not valid TOML: ${reason.replace(/^Invalid TOML document: /, '')}`;
    throw invalidConfiguration(`${file}:${error.line}:${error.column}`, [{ path: [], message }]);
  }
}
