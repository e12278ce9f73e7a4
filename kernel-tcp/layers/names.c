// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * names.c - reads the key `layers`: names, parameters, ranges.
 *
 * The table is made from names/NAME.toml (table.py), so that the loader and
 * scenarios/tcp.py check by the same bounds.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "algorithms.h"
#include "kernel.h"
#include "layer_table.h"
#include "layers/names.h"

struct parameter {
	const char *name;
	double min, max, initial;
	double scale;			/* the value kept is the written one times this */
	const char *const *choices;	/* NULL: a number */
};

static const struct row {
	const char *name;
	const struct layer *layer;
	bool held;			/* notices = "held" */
	struct parameter parameters[LAYER_VALUES];
} table[] = {
LAYER_TABLE
};
#define ROWS (sizeof(table) / sizeof(table[0]))
_Static_assert(ROWS <= 32, "tcp_layers.chosen has a bit for each");

static const struct row *row_of(const char *name)
{
	for (size_t i = 0; name && i < ROWS; i++)
		if (!strcmp(table[i].name, name))
			return &table[i];
	return NULL;
}

const struct layer *answering_layer(const struct connection *own)
{
	return own->settings.mechanisms & MECHANISM_STAND_BY ?
	       table[own->settings.answering].layer : NULL;
}

bool follows_repairs(const struct connection *own)
{
	return answering_layer(own) && table[own->settings.answering].held;
}

/* ---- the key `layers` ---- */

static int set_choice(const char *where, const struct parameter *parameter,
		      json_t *value, __u32 *kept)
{
	char known[128] = "";

	for (int i = 0; parameter->choices[i]; i++) {
		if (json_is_string(value) &&
		    !strcmp(json_string_value(value), parameter->choices[i])) {
			*kept = i;
			return 0;
		}
		strcat(known, i ? ", " : "");
		strcat(known, parameter->choices[i]);
	}
	return complain("%s: \"%s\" must be one of %s", where, parameter->name, known);
}

static int set_number(const char *where, const struct parameter *parameter,
		      json_t *value, __u32 *kept)
{
	double number = json_number_value(value);

	if (!json_is_number(value) || number < parameter->min ||
	    number > parameter->max)
		return complain("%s: \"%s\" must be a number from %.15g to %.15g", where,
				parameter->name, parameter->min, parameter->max);
	*kept = number * parameter->scale + 0.5;
	return 0;
}

/* Its place in the row; LAYER_VALUES if it is not there. */
static size_t place_of(const struct row *row, const char *name)
{
	for (size_t i = 0; i < LAYER_VALUES && row->parameters[i].name; i++)
		if (!strcmp(row->parameters[i].name, name))
			return i;
	return LAYER_VALUES;
}

static int load_parameters(const char *where, const struct row *row,
			   json_t *parameters, __u32 *values)
{
	const struct parameter *parameter;
	const char *key;
	json_t *value;
	size_t place;

	for (size_t i = 0; i < LAYER_VALUES && row->parameters[i].name; i++)
		values[i] = row->parameters[i].initial * row->parameters[i].scale + 0.5;
	if (parameters && !json_is_object(parameters))
		return complain("%s: \"parameters\" must be an object", where);
	json_object_foreach(parameters, key, value) {
		place = place_of(row, key);
		if (place == LAYER_VALUES)
			return complain("%s: no parameter \"%s\"; kernel-tcp/names/%s.toml lists them",
					where, key, row->name);
		parameter = &row->parameters[place];
		if (parameter->choices ?
		    set_choice(where, parameter, value, &values[place]) :
		    set_number(where, parameter, value, &values[place]))
			return -1;
	}
	return 0;
}

static bool is_chosen(const struct tcp_layers *own, size_t i)
{
	return own->chosen & 1U << i;
}

static void apply(const struct row *row, const __u32 *values, struct tcp_layers *own)
{
	struct layer_settings *settings = &own->settings;

	own->chosen |= 1U << (row - table);
	settings->mechanisms |= row->layer->mechanisms;
	if (row->layer->notice) {
		settings->mechanisms |= MECHANISM_STAND_BY;
		settings->answering = row - table;
		settings->leave = row->layer->leave;
		memcpy(settings->values, values, sizeof(settings->values));
	}
	if (row->layer->configure)
		row->layer->configure(values, settings);
}

static bool answers_already(const struct tcp_layers *own)
{
	return own->settings.mechanisms & MECHANISM_STAND_BY;
}

static int load_layer(const char *path, const char *where, json_t *object,
		      struct tcp_layers *own)
{
	const char *name = json_string_value(json_object_get(object, "name"));
	const struct row *row = row_of(name);
	__u32 values[LAYER_VALUES] = {};
	char here[4096 + 256];

	if (!row)
		return complain("%s: %s: no layer \"%s\"; kernel-tcp/names lists them",
				path, where, name ? name : "");
	if (is_chosen(own, row - table))
		return complain("%s: %s: layer \"%s\" is there twice; remove one", path,
				where, name);
	if (row->layer->notice && answers_already(own))
		return complain("%s: %s: \"%s\" and another layer both answer route failures; keep one",
				path, where, name);
	snprintf(here, sizeof(here), "%s: %s: layer \"%s\"", path, where, name);
	if (load_parameters(here, row, json_object_get(object, "parameters"), values))
		return -1;
	apply(row, values, own);
	return 0;
}

int layers_load(const char *path, const char *where, json_t *list,
		struct tcp_layers *own)
{
	if (!list || json_is_null(list))
		return 0;
	if (!json_is_array(list))
		return complain("%s: %s: \"layers\" must be a list, outermost first",
				path, where);
	for (size_t i = 0; i < json_array_size(list); i++)
		if (load_layer(path, where, json_array_get(list, i), own))
			return -1;
	return 0;
}

/* ---- spelling ---- */

const char *layer_with_algorithm(const struct tcp_layers *own)
{
	for (size_t i = 0; i < ROWS; i++)
		if (is_chosen(own, i) && algorithm_is_builtin(table[i].name))
			return table[i].name;
	return NULL;
}

void layers_spell(const struct tcp_layers *own, const char *algorithm, char *text,
		  size_t bytes)
{
	size_t used = 0, open = 0;

	if (layer_with_algorithm(own))
		algorithm = "newreno";
	/* The layer that answers notices is outermost: those inside never see a
	 * failure. */
	for (int answers = 1; answers >= 0; answers--)
		for (size_t i = 0; i < ROWS; i++) {
			if (!is_chosen(own, i) || answers != !!table[i].layer->notice)
				continue;
			used += snprintf(text + used, bytes - used, "%s(", table[i].name);
			used = used < bytes ? used : bytes - 1;
			open++;
		}
	snprintf(text + used, bytes - used, "%s%.*s", algorithm, (int)open, ")))))))");
}
