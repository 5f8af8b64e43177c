import { z } from 'zod';
import { integer } from '../config/fields.ts';

export const moment = z.iso.datetime({
  offset: true,
  error: 'must be a time such as 2030-01-31T12:00:00Z',
});

/** Query values are strings. */
export function pageLimit(largest: number, usual: number) {
  return z
    .string()
    .regex(/^\d{1,3}$/, `must be a whole number from 1 to ${largest}`)
    .transform(Number)
    .pipe(integer(1, largest))
    .default(usual);
}
