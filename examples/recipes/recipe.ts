import { z } from 'zod';

export const recipe = z.object({
  title: z.string().min(1).max(200).describe('The name of the dish'),
  servings: z.number().int().min(1).max(100).describe('The number of people it serves'),
  ingredients: z.array(z.string()).min(1).describe('Each with its amount, like "200 g flour"'),
  steps: z.array(z.string()).min(1).describe('The steps, in order'),
});

export const recipeChanges = recipe.partial();

export type Recipe = z.infer<typeof recipe>;
export type RecipeChanges = z.infer<typeof recipeChanges>;
