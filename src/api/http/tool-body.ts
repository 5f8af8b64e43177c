import type { z } from 'zod';
import { parseObject } from './body.ts';
import { check } from './check.ts';
import { checkDepth } from './storable.ts';

/** A body with what tools gave in it, which may be what other bodies must not hold. */
export function readToolBody<Schema extends z.ZodType>(schema: Schema, body: string): z.output<Schema> {
  const value = parseObject(body);
  checkDepth(value);
  return check(schema, value);
}
