// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * names.c - reads the key `layers`: names, parameters, ranges.
 *
 * The table that users see is names/<name>.toml, and scenarios/tcp.py
 * checks by it and fills in what is left out; here is what the programs rely on.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "kernel.h"
#include "layers/names.h"

struct parameter {
	const char *name;
	size_t offset;			/* in struct layer_settings */
	double least, most, initial;
	double scale;			/* what is kept is so many times what is written */
	const char *const *choices;	/* else a number */
};

#define TIME(name, least, most, initial) \
	{ #name, offsetof(struct layer_settings, name), least, most, initial, 1, NULL }
#define PROBE_US TIME(probe_us, 100000, 30000000, 2000000)

static const char *const repairs[] = {
	[REPAIR_UNCHANGED] = "unchanged",
	[REPAIR_WINDOW] = "window",
	[REPAIR_INITIAL] = "initial",
	NULL,
};

static const char *const packets[] = {
	[PROBE_FIRST] = "first",
	[PROBE_LOST] = "lost",
	NULL,
};

static const char *const leaves[] = {
	[LEAVE_ANY_ACK] = "any-ack",
	[LEAVE_PROBE_ACK] = "probe-ack",
	NULL,
};

static const char *const restores[] = {
	[RESTORE_AT_NOTICE] = "at-notice",
	[RESTORE_BEFORE_TIMEOUT] = "before-timeout",
	NULL,
};

#define CHOICE(name, choices) \
	{ #name, offsetof(struct layer_settings, name), 0, 0, 0, 1, choices }

static const struct layer_name {
	const char *name;
	enum layer layer;
	struct parameter parameters[5];
	enum leave leave;		/* where it is no parameter */
} layers[] = {
	{ "reno-f", LAYER_RENO_F, {}, LEAVE_ANY_ACK },
	{ "elfn", LAYER_ELFN, {
		PROBE_US,
		CHOICE(repair, repairs),
		CHOICE(packet, packets),
		CHOICE(leave, leaves),
		CHOICE(restore, restores),
	}, LEAVE_ANY_ACK },
	{ "tcpf", LAYER_TCPF, { TIME(failure_us, 1000000, 600000000, 30000000) },
	  LEAVE_PROBE_ACK },
	{ "atcp", LAYER_ATCP, { PROBE_US }, LEAVE_PROBE_ACK },
	{ "tcpbus", LAYER_TCPBUS, {
		{ "factor", offsetof(struct layer_settings, factor_percent), 1, 16, 2,
		  100, NULL },
	}, LEAVE_PROBE_ACK },
	{ "lcd", LAYER_LCD, {}, LEAVE_ANY_ACK },
};
#define LAYER_COUNT (sizeof(layers) / sizeof(layers[0]))
#define PARAMETERS (sizeof(layers[0].parameters) / sizeof(layers[0].parameters[0]))

static const struct layer_name *layer_of(const char *name)
{
	for (size_t i = 0; name && i < LAYER_COUNT; i++)
		if (!strcmp(layers[i].name, name))
			return &layers[i];
	return NULL;
}

static void set(struct layer_settings *own, const struct parameter *parameter,
		double value)
{
	*(__u32 *)((char *)own + parameter->offset) = value * parameter->scale + 0.5;
}

static int set_choice(const char *where, const struct parameter *parameter,
		      json_t *value, struct layer_settings *own)
{
	char known[128] = "";

	for (int i = 0; parameter->choices[i]; i++) {
		if (json_is_string(value) &&
		    !strcmp(json_string_value(value), parameter->choices[i])) {
			set(own, parameter, i);
			return 0;
		}
		strcat(known, i ? ", " : "");
		strcat(known, parameter->choices[i]);
	}
	return complain("%s: \"%s\" must be one of %s", where, parameter->name, known);
}

static int set_number(const char *where, const struct parameter *parameter,
		      json_t *value, struct layer_settings *own)
{
	double number = json_number_value(value);

	if (!json_is_number(value) || number < parameter->least ||
	    number > parameter->most)
		return complain("%s: \"%s\" must be a number from %.15g to %.15g", where,
				parameter->name, parameter->least, parameter->most);
	set(own, parameter, number);
	return 0;
}

static const struct parameter *parameter_of(const struct layer_name *layer,
					    const char *name)
{
	for (size_t i = 0; i < PARAMETERS && layer->parameters[i].name; i++)
		if (!strcmp(layer->parameters[i].name, name))
			return &layer->parameters[i];
	return NULL;
}

static int load_parameters(const char *where, const struct layer_name *layer,
			   json_t *parameters, struct layer_settings *own)
{
	const struct parameter *parameter;
	const char *key;
	json_t *value;

	for (size_t i = 0; i < PARAMETERS && layer->parameters[i].name; i++)
		set(own, &layer->parameters[i], layer->parameters[i].initial);
	if (parameters && !json_is_object(parameters))
		return complain("%s: \"parameters\" must be an object", where);
	json_object_foreach(parameters, key, value) {
		parameter = parameter_of(layer, key);
		if (!parameter)
			return complain("%s: no parameter \"%s\"; kernel-tcp/names/%s.toml lists them",
					where, key, layer->name);
		if (parameter->choices ? set_choice(where, parameter, value, own) :
					 set_number(where, parameter, value, own))
			return -1;
	}
	return 0;
}

static int load_layer(const char *path, const char *where, json_t *object,
		      struct layer_settings *own)
{
	const char *name = json_string_value(json_object_get(object, "name"));
	const struct layer_name *layer = layer_of(name);
	char here[4096 + 256];

	if (!layer)
		return complain("%s: %s: no layer \"%s\"; kernel-tcp/names lists them",
				path, where, name ? name : "");
	if (own->layers & layer->layer)
		return complain("%s: %s: layer \"%s\" is there twice; remove one", path,
				where, name);
	if (layer->layer & NOTICE_LAYERS && own->layers & NOTICE_LAYERS)
		return complain("%s: %s: \"%s\" and another layer both answer route failures; keep one",
				path, where, name);
	own->layers |= layer->layer;
	if (layer->layer & NOTICE_LAYERS)
		own->leave = layer->leave;
	snprintf(here, sizeof(here), "%s: %s: layer \"%s\"", path, where, name);
	return load_parameters(here, layer, json_object_get(object, "parameters"), own);
}

int layers_load(const char *path, const char *where, json_t *list,
		struct layer_settings *own)
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

void layers_spell(const struct layer_settings *own, const char *algorithm,
		  char *text, size_t bytes)
{
	size_t used = 0, open = 0;

	/* A notice layer is outermost: what is inside never sees a failure. */
	for (size_t i = LAYER_COUNT; i-- > 0; ) {
		if (!(own->layers & layers[i].layer))
			continue;
		used += snprintf(text + used, bytes - used, "%s(", layers[i].name);
		used = used < bytes ? used : bytes - 1;
		open++;
	}
	snprintf(text + used, bytes - used, "%s%.*s", algorithm, (int)open, ")))))))");
}
