import { InvalidArgumentError } from 'commander';
import { counted, localTime } from './output.ts';

const unitMs: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A time, or an age: 90s, 15m, 2h, 7d. */
export function moment(text: string): string {
  const age = lengthOf(text);
  const date = new Date(age === undefined ? dateOf(text) : Date.now() - age);
  if (Number.isNaN(date.getTime())) {
    throw new InvalidArgumentError(
      'Use a time such as 2030-01-31T12:00:00Z, or an age such as 90s, 15m, 2h or 7d.',
    );
  }
  return date.toISOString();
}

/** In milliseconds: 0, 90s, 15m, 24h, 7d. */
export function duration(text: string): number {
  const length = text === '0' ? 0 : lengthOf(text);
  if (length === undefined) throw new InvalidArgumentError('Use a duration such as 15m, 24h or 7d, or 0.');
  return length;
}

/** A time from now, a date, or `never`, because Commander does not pass null on. */
export function expiry(text: string): string {
  if (text === 'never') return text;
  const length = lengthOf(text);
  const time = length === undefined ? dateOf(text) : Date.now() + length;
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) {
    throw new InvalidArgumentError('Use a time from now such as 90d, a date such as 2030-01-31, or never.');
  }
  if (time <= Date.now()) throw new InvalidArgumentError('That is in the past.');
  return date.toISOString();
}

/** Such as "in 89 days", or "never". */
export function untilText(time: string | null, now: Date): string {
  if (time === null) return 'never';
  const left = Date.parse(time) - now.getTime();
  return left <= 0 ? 'expired' : `in ${roughly(left)}`;
}

export function agoText(time: string | null, now: Date): string {
  return time === null ? 'never' : `${roughly(Math.max(0, now.getTime() - Date.parse(time)))} ago`;
}

/** The date, and how far away it is. */
export function expiryText(time: string | null, now: Date): string {
  return time === null ? 'never' : `${localTime(time)} (${untilText(time, now)})`;
}

function roughly(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1_000);
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 2 * 3_600) return `${Math.round(seconds / 60)} min`;
  if (seconds < 2 * 86_400) return `${Math.round(seconds / 3_600)} h`;
  return counted(Math.round(seconds / 86_400), 'day');
}

function lengthOf(text: string): number | undefined {
  const [, count, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  return count === undefined ? undefined : Number(count) * unitMs[unit!]!;
}

function dateOf(text: string): number {
  return /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN;
}
