import { isIP } from 'node:net';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { toolNamings } from '../config/choices.ts';
import { DEFAULT_PROJECT, DEFAULT_URL, URL_VARIABLE } from './defaults.ts';
import { usageError } from './exit.ts';

export interface ApiFlags {
  url: string;
  json?: boolean;
}

export interface ProjectFlags extends ApiFlags {
  project: string;
}

export function apiCommand(
  parent: Command,
  usage: string,
  description: string,
  options: readonly Option[] = [],
  json = 'print JSON',
): Command {
  const command = parent.command(usage).description(description);
  for (const option of [...options, urlOption(), jsonOption(json)]) command.addOption(option);
  return command;
}

export function urlOption(): Option {
  return new Option('--url <url>', 'the address of the running Switchboard')
    .env(URL_VARIABLE)
    .argParser(baseUrl)
    .default(DEFAULT_URL);
}

export function projectOption(): Option {
  return new Option('-P, --project <project>', 'id or name of the project').default(DEFAULT_PROJECT);
}

/** Without a default: all projects. */
export function anyProjectOption(): Option {
  return new Option('-P, --project <project>', 'only this project (its id or name)');
}

export function jsonOption(what = 'print JSON'): Option {
  return new Option('--json', what);
}

export function namesOption(): Option {
  return new Option(
    '--names <how>',
    'model-safe: tool names fit the APIs of all models; as-is: they keep dots and colons',
  ).choices(toolNamings);
}

export function yesOption(): Option {
  return new Option('-y, --yes', 'do not ask for confirmation');
}

/** Accepts an address with or without the endpoint's path. */
function baseUrl(text: string): string {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new InvalidArgumentError('Use an address such as http://127.0.0.1:7400.');
  }
  return url.origin;
}

/** The address that clients use, without a path. */
export function publicUrl(text: string): string {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol) || ![url.origin, `${url.origin}/`].includes(text)) {
    throw new InvalidArgumentError('Use an address without a path, such as https://sb.example.');
  }
  return url.origin;
}

/** Repeatable. */
export function addressRange(text: string, before: string[] = []): string[] {
  const [address = '', bits, ...more] = text.split('/');
  const version = isIP(address);
  const isRange =
    bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128));
  if (version === 0 || more.length > 0 || !isRange) {
    throw new InvalidArgumentError('Use an address or a range, such as 127.0.0.1 or 10.0.0.0/8.');
  }
  return [...before, text];
}

export function port(text: string): number {
  const number = Number(text);
  if (!Number.isInteger(number) || number < 0 || number > 65_535) {
    throw new InvalidArgumentError('Use a number from 0 to 65535.');
  }
  return number;
}

export function seconds(text: string): number {
  const number = Number(text);
  if (!(number > 0)) throw new InvalidArgumentError('Use a number above 0.');
  return number;
}

export function wholeNumber(text: string): number {
  if (!/^\d{1,10}$/.test(text)) throw new InvalidArgumentError('Use a whole number.');
  return Number(text);
}

/** From 1. */
export function numberUpTo(most: number): (text: string) => number {
  return (text) => {
    const number = /^\d{1,15}$/.test(text) ? Number(text) : 0;
    if (number < 1 || number > most) throw new InvalidArgumentError(`Use a whole number from 1 to ${most}.`);
    return number;
  };
}

export function onOrOff(text: string): boolean {
  if (text === 'on' || text === 'off') return text === 'on';
  throw new InvalidArgumentError('Use "on" or "off".');
}

export function daysOrNever(text: string): number | 'never' {
  if (text === 'never') return text;
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Use a number of days, or "never".');
}

type Pairs = Record<string, string>;

export function pairs(option: string): (text: string, before?: Pairs) => Pairs {
  return (text, before = {}) => ({ ...before, ...pair(option, text, /^([^=]+)=(.*)$/s) });
}

/** Accepts NAME=value, and NAME: value as in HTTP. */
export function header(text: string, before: Pairs = {}): Pairs {
  return { ...before, ...pair('--header', text.replace(/^([^=:\s]+):\s*/, '$1='), /^([^=:\s]+)=(.*)$/s) };
}

/** Unlike Commander's error, this one does not repeat the value, which may be secret. */
function pair(option: string, text: string, form: RegExp): Pairs {
  const [, name, value] = form.exec(text) ?? [];
  if (name === undefined || value === undefined) throw usageError(`${option} takes NAME=value.`);
  return { [name]: value };
}

export function list(text: string, before: string[] = []): string[] {
  return [...before, text];
}
