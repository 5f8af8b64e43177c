import { InvalidArgumentError, Option } from 'commander';
import { DEFAULT_PROJECT, DEFAULT_URL, URL_VARIABLE } from './defaults.ts';
import { usageError } from './exit.ts';

/** Options that several commands have, and what their values may be. */

export function urlOption(): Option {
  return new Option('--url <url>', 'the running Switchboard')
    .env(URL_VARIABLE)
    .argParser(baseUrl)
    .default(DEFAULT_URL);
}

export function projectOption(): Option {
  return new Option('-P, --project <project>', 'id or name of the project').default(DEFAULT_PROJECT);
}

/** Where no project means all of them. */
export function anyProjectOption(): Option {
  return new Option('-P, --project <project>', 'only of this project (its id or name)');
}

export function jsonOption(what = 'print JSON'): Option {
  return new Option('--json', what);
}

export function namesOption(): Option {
  return new Option(
    '--names <how>',
    'model-safe: names of tools fit the APIs of all models; as-is: they keep dots and colons',
  ).choices(['model-safe', 'as-is']);
}

export function yesOption(): Option {
  return new Option('-y, --yes', 'do not ask');
}

/** The address as people have it at hand: with or without the path of the endpoint. */
function baseUrl(text: string): string {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new InvalidArgumentError('An address looks like http://127.0.0.1:7400.');
  }
  return url.origin;
}

export function port(text: string): number {
  const number = Number(text);
  if (!Number.isInteger(number) || number < 0 || number > 65_535) {
    throw new InvalidArgumentError('A port is a number from 0 to 65535.');
  }
  return number;
}

export function seconds(text: string): number {
  const number = Number(text);
  if (!(number > 0)) throw new InvalidArgumentError('Seconds are a number above 0.');
  return number;
}

export function wholeNumber(text: string): number {
  if (!/^\d{1,10}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.');
  return Number(text);
}

export function onOrOff(text: string): boolean {
  if (text === 'on' || text === 'off') return text === 'on';
  throw new InvalidArgumentError('It is either "on" or "off".');
}

export function daysOrNever(text: string): number | 'never' {
  if (text === 'never') return text;
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It is a number of days, or "never".');
}

type Pairs = Record<string, string>;

/** NAME=value, said once for each. */
export function pairs(option: string): (text: string, before?: Pairs) => Pairs {
  return (text, before = {}) => ({ ...before, ...pair(option, text, /^([^=]+)=(.*)$/s) });
}

/** A header as people write it: NAME=value, or NAME: value as it is sent. */
export function header(text: string, before: Pairs = {}): Pairs {
  return { ...before, ...pair('--header', text.replace(/^([^=:\s]+):\s*/, '$1='), /^([^=:\s]+)=(.*)$/s) };
}

/** What was typed is not repeated, as Commander would: it may be a secret. */
function pair(option: string, text: string, form: RegExp): Pairs {
  const [, name, value] = form.exec(text) ?? [];
  if (name === undefined || value === undefined) throw usageError(`${option} takes NAME=value.`);
  return { [name]: value };
}

export function list(text: string, before: string[] = []): string[] {
  return [...before, text];
}

const unitMs: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A time, or how long ago it was: 90s, 15m, 2h, 7d. */
export function moment(text: string): string {
  const [, count, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  const time = count === undefined ? dateOf(text) : Date.now() - Number(count) * unitMs[unit!]!;
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) {
    throw new InvalidArgumentError(
      'A time looks like 2030-01-31T12:00:00Z, or 90s, 15m, 2h or 7d for so long ago.',
    );
  }
  return date.toISOString();
}

function dateOf(text: string): number {
  return /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN;
}
